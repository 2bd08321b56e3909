from __future__ import annotations

import importlib.metadata
import json
import sys
from typing import Any

import pytest
from sagemaker_sticky import cli

from tests.client.house import House
from tests.client.wire import Wire

SMOKE = ["smoke", "--endpoint-name", "house"]
NAMES = ["session_opens", "session_remembers", "session_streams", "session_closes"]


@pytest.fixture
def house(wire: Wire, credentials: None) -> House:
    wire.handle = House()
    return wire.handle


def test_a_row_for_each_check(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(SMOKE) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["pass", name] for name in NAMES]


def test_a_failed_check_is_exit_status_1(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.closes = False

    assert cli.main(SMOKE) == 1

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["pass", "pass", "pass", "FAIL"]


@pytest.mark.parametrize(("closes", "status"), [(True, 0), (False, 1)])
def test_json_is_one_object(house: House, capsys: pytest.CaptureFixture[str], closes: bool, status: int) -> None:
    house.closes = closes

    assert cli.main([*SMOKE, "--json"]) == status

    report = json.loads(capsys.readouterr().out)
    assert report["endpoint_name"] == "house"
    assert report["passed"] is closes
    assert [check["name"] for check in report["checks"]] == NAMES
    assert report["checks"][-1]["passed"] is closes


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


@pytest.mark.parametrize("with_rich", [True, False])
def test_a_terminal_has_colours_where_rich_is_there(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], with_rich: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    if not with_rich:
        for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "rich", None)

    assert cli.main(SMOKE) == 0

    out = capsys.readouterr().out
    assert ("\x1b[32mpass" in out) is with_rich
    assert all(name in out for name in NAMES)


def test_the_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="sticky")

    main: Any = command.load()
    assert main is cli.main
