from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import sagemaker_sticky

PACKAGE = Path(sagemaker_sticky.__file__).parent


def test_every_public_name_is_there_and_sorted() -> None:
    assert sagemaker_sticky.__all__ == sorted(sagemaker_sticky.__all__)
    assert {name for name in vars(sagemaker_sticky) if name[0].isupper()} == set(sagemaker_sticky.__all__)


def test_an_import_takes_what_boto3_takes_and_no_more() -> None:
    probe = "import sys, boto3; import sagemaker_sticky; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout.split()

    assert not {"asyncio", "rich", "langchain_core", "argparse", "sagemaker_sticky.aio"} & set(loaded)
    assert not [name for name in loaded if name.split(".")[:2] == ["sagemaker_sticky", "cli"]]


def test_the_package_imports_nothing_but_boto3_and_the_protocol() -> None:
    allowed = {"boto3", "botocore", "urllib3", "sagemaker_sticky_protocol", "rich"} | set(sys.stdlib_module_names)
    found = set()
    for path in set(PACKAGE.rglob("*.py")) - {PACKAGE / "langchain.py"}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])

    assert found <= allowed
