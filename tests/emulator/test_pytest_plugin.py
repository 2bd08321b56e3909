"""The fixtures as a project of one's own takes them; what `control` does is in `test_fault_api`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
def test_a_loss(control):
    control.fault(answer=424)
    control.kill(control.instances[0])


def test_the_next_test_begins_afresh(emulator, control):
    assert (len(control.instances), control.faults) == (2, [])
    assert emulator.environment["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"] == emulator.url
"""


@pytest.mark.parametrize(
    "conftest",
    ['pytest_plugins = ["emulator.pytest_plugin"]', "from emulator.pytest_plugin import control, emulator"],
)
def test_a_project_takes_the_fixtures(conftest: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], text=True, capture_output=True, timeout=120, check=False
    )
    assert "2 passed" in done.stdout, done.stdout
