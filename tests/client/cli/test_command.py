from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from typing import Any

import pytest
from sagemaker_sticky import cli

from tests.client.house import House
from tests.client.wire import Wire

SMOKE = ["smoke", "--endpoint-name", "house"]


def test_the_region_is_taken_from_the_command(house: House, wire: Wire, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([*SMOKE, "--region", "ap-south-1"])

    assert "/ap-south-1/sagemaker/" in wire.requests[0].headers["Authorization"]


@pytest.mark.parametrize("arguments", [[], ["smoke"], ["nothing"]])
def test_wrong_arguments_are_exit_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)

    assert caught.value.code == 2
    assert "usage: sticky" in capsys.readouterr().err


def test_no_region_is_exit_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(SMOKE) == 2

    assert "region" in capsys.readouterr().err


def test_the_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="sticky")

    main: Any = command.load()
    assert main is cli.main


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sagemaker_sticky", "--help"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout.partition("[")[0]) == (0, "usage: sticky ")
