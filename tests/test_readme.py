"""What the README says is done here as it says it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from emulator import running_emulator

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_snippet_runs_as_it_stands() -> None:
    (snippet,) = blocks("python")
    with running_emulator(instances=2, engine="echo") as emulator:
        environment = {**os.environ, **emulator.environment}
        done = subprocess.run(
            [sys.executable, "-c", snippet], env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "At first: My dog is called Rex." in done.stdout
    assert "Usage(" in done.stdout


@pytest.mark.parametrize("engine", ["echo", pytest.param("sglang", marks=pytest.mark.sglang)])
def test_the_demo_ends_well(engine: str) -> None:
    command = [sys.executable, "-m", "scripts.demo", "--engine", engine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("demo: OK\n")
    assert sum("->" in line for line in done.stdout.splitlines()) == 7  # the heading, and a row for each turn


def test_every_make_target_it_names_exists() -> None:
    named = set(re.findall(r"make ([a-z]+)", README))
    assert {"demo", "test", "setup", "check", "emulator"} <= named
    for target in named:
        assert re.search(rf"^{target}:", MAKEFILE, re.M), target


def test_every_file_it_links_to_exists() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
    for folder in re.findall(r"^\| `([a-z]+)/`", README, re.M):
        assert (ROOT / folder).is_dir(), folder
