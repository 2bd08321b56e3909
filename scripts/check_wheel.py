"""``python -m scripts.check_wheel``: the client's wheel, alone in a clean environment of every Python that is here.

Builds it once; for each of Python 3.10 to 3.13 that is found, installs it with what it needs and nothing else, and lets
its ``sticky smoke`` check an emulator on the echo engine. Needs a package registry. Exit status 1: one of them failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from emulator import running_emulator

CLIENT = Path(__file__).parents[1] / "client"
MINORS = (10, 11, 12, 13)


def main() -> int:
    """Build, install, check; a line for each Python."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="sagemaker-sticky-") as name:
        folder = Path(name)
        wheel = build(folder)
        with running_emulator(instances=2, engine="echo") as emulator:
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            for minor in MINORS:
                python = find_python(minor)
                if python is None:
                    print(f"-     Python 3.{minor}: not here")
                    continue
                problem = check(python, wheel, folder / f"3.{minor}", environment | emulator.environment)
                print(f"{'FAIL' if problem else 'pass'}  Python 3.{minor}: {problem or wheel.name}", flush=True)
                failed += bool(problem)
    return 1 if failed else 0


def build(folder: Path) -> Path:
    """The wheel, from a copy of the sources: setuptools leaves build/ and *.egg-info beside them."""
    sources = folder / "client"
    shutil.copytree(CLIENT, sources, ignore=shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(sources)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def find_python(minor: int) -> Path | None:
    """An interpreter of that version on the path or among pyenv's, which really runs."""
    return next((each for each in candidates(minor) if runs(each)), None)


def candidates(minor: int) -> Iterator[Path]:
    """Where it may be."""
    if found := shutil.which(f"python3.{minor}"):
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from pyenv.glob(f"versions/3.{minor}.*/bin/python")


def runs(python: Path) -> bool:
    """Whether it is more than a shim."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def check(python: Path, wheel: Path, folder: Path, environment: dict[str, str]) -> str:
    """Install and smoke; what went wrong, or nothing."""
    own = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", str(own)]
    modules = "sagemaker_sticky, sagemaker_sticky.aio, sagemaker_sticky.compat, sagemaker_sticky_protocol"
    steps = [
        [str(python), "-m", "venv", "--without-pip", str(folder)],
        [*pip, "install", "--no-compile", str(wheel)],
        [*pip, "check"],
        [str(own), "-W", "error", "-c", f"import {modules}"],
        [str(folder / "bin" / "sticky"), "smoke", "--endpoint-name", "sticky"],
    ]
    for step in steps:
        done = subprocess.run(step, env=environment, capture_output=True, text=True, check=False, cwd=folder.parent)
        if done.returncode:
            return (done.stdout + done.stderr).strip()
    return ""


if __name__ == "__main__":
    sys.exit(main())
