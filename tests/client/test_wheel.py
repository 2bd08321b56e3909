"""The wheel as a user gets it."""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "client"


def test_it_holds_the_package_and_the_protocol_alone(wheel: Path) -> None:
    sources = {path.relative_to(CLIENT).as_posix() for path in CLIENT.glob("sagemaker_sticky/**/*.py")}

    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == sources | {"sagemaker_sticky/py.typed", "sagemaker_sticky_protocol.py"}


def test_it_needs_boto3_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))

    needed = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert [each.partition(">=")[0] for each in needed] == ["boto3"]
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"


def test_it_runs_without_its_sources(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    probe = "import sagemaker_sticky, sagemaker_sticky.cli, sagemaker_sticky.compat; print(sagemaker_sticky.__file__)"

    shown = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout

    assert Path(shown.strip()).is_relative_to(tmp_path)
