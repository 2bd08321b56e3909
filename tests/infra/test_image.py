"""What is in the image, and what changes it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App, Stack

from infra.endpoint import container_image

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what could go into an image and what could not; the CDK remembers hashes by path, so it has its own."""
    copy = tmp_path / "copy"
    for folder in ("container", "infra", "client/sagemaker_sticky", "tests/infra"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (".dockerignore", "app.py", "cdk.json", "client/sagemaker_sticky_protocol.py"):
        shutil.copy(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="module")
def repository_hash() -> str:
    return container_image(Stack(), directory=ROOT).asset_hash


def edit(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("# edited\n")


@pytest.mark.parametrize(
    "path",
    [
        "infra/config.py",
        "tests/infra/test_image.py",
        "app.py",
        "cdk.json",
        "README.md",
        "client/sagemaker_sticky/__init__.py",
        "container/__pycache__/config.cpython-312.pyc",
        "container/README.md",
        ".git/HEAD",
    ],
)
def test_an_edit_elsewhere_leaves_the_image(tree, repository_hash, path):
    edit(tree / path)
    assert container_image(Stack(), directory=tree).asset_hash == repository_hash


@pytest.mark.parametrize(
    "path",
    [
        "container/config.py",
        "container/new_module.py",
        "container/requirements.txt",
        "container/Dockerfile",
        "client/sagemaker_sticky_protocol.py",
    ],
)
def test_an_edit_of_what_the_image_holds_changes_it(tree, repository_hash, path):
    edit(tree / path)
    assert container_image(Stack(), directory=tree).asset_hash != repository_hash


def hash_in_a_process(tree: Path) -> str:
    """The image's hash as a process of its own finds it, which has nothing remembered."""
    imports = "from aws_cdk import Stack; from infra.endpoint import container_image"
    script = f"{imports}; print(container_image(Stack()).asset_hash)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tree, text=True, capture_output=True, timeout=60, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("paths", "same"),
    [
        (["infra/config.py", "tests/infra/test_image.py"], True),
        (["container/config.py"], False),
        (["client/sagemaker_sticky_protocol.py"], False),
    ],
)
def test_another_process_sees_the_same(tree, repository_hash, paths, same):
    for path in paths:
        edit(tree / path)
    assert (hash_in_a_process(tree) == repository_hash) == same


def test_the_build_sees_what_the_allow_list_names_and_nothing_else(tmp_path):
    app = App(outdir=str(tmp_path))
    image = container_image(Stack(app, "Stack"))
    app.synth()
    staged = tmp_path / f"asset.{image.asset_hash}"
    files = {str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()}
    modules = {f"container/{path.name}" for path in Path(ROOT, "container").glob("*.py")}
    assert files == modules | {
        ".dockerignore",
        "container/Dockerfile",
        "container/requirements.txt",
        "client/sagemaker_sticky_protocol.py",
    }


def test_the_image_is_built_for_sagemakers_machines_on_the_base_that_is_asked_for(tmp_path):
    app = App(outdir=str(tmp_path))
    container_image(Stack(app, "Stack"), base_image="sglang:other")
    app.synth()
    manifest = json.loads((tmp_path / "Stack.assets.json").read_text())
    (image,) = manifest["dockerImages"].values()
    assert image["source"]["dockerBuildArgs"] == {"BASE_IMAGE": "sglang:other"}
    assert image["source"]["dockerFile"] == "container/Dockerfile"
    assert image["source"]["platform"] == "linux/amd64"


def test_the_dockerfile_lets_the_base_be_chosen_and_takes_signals():
    text = Path(ROOT, "container/Dockerfile").read_text()
    assert re.search(r"^ARG BASE_IMAGE=\S+\nFROM \$\{BASE_IMAGE\}$", text, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["python3", "-m", "container"\]$', text, re.MULTILINE)
