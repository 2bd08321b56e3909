"""The types that a caller sees, of the wheel as it is installed, to mypy and to pyright; both strict."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

CALLER = Path(__file__).with_name("caller.py")
WRONG = """
from sagemaker_sticky import StickyClient
turn = StickyClient("name").invoke("Hello")
number: int = turn.text
"""


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which finds boto3 where this one has it."""
    folder = tmp_path_factory.mktemp("typing")
    venv.create(folder)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "boto3.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


def mypy(python: Path) -> list[str]:
    return ["mypy", "--strict", "--config-file=", "--cache-dir=/dev/null", "--python-executable", str(python)]


def pyright(python: Path) -> list[str]:
    return ["basedpyright", "--level", "error", "--pythonpath", str(python)]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_caller_is_typed_and_a_mistake_is_found(
    python: Path, tmp_path: Path, checker: Callable[[Path], list[str]]
) -> None:
    (tmp_path / "caller.py").write_text(CALLER.read_text())
    (tmp_path / "wrong.py").write_text(WRONG)

    command = [sys.executable, "-m", *checker(python), "caller.py", "wrong.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    errors = [line for line in said.splitlines() if "error:" in line or "- error" in line]
    assert len(errors) == 1, said
    assert "wrong.py:4" in errors[0]
    assert "str" in errors[0]
