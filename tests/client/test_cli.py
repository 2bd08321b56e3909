from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sagemaker_sticky import cli

from tests.client.house import House
from tests.client.wire import Reply, Request, Wire, answer

SMOKE = ["smoke", "--endpoint-name", "house"]
NAMES = ["session_opens", "session_remembers", "session_streams", "session_recovers", "session_closes"]


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

    said = capsys.readouterr()
    rows = [line.split() for line in said.out.splitlines()]
    assert [row[0] for row in rows] == ["pass", "pass", "pass", "FAIL", "FAIL"]
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("sticky: ")
    assert all(row[1] in said.err for row in rows if row[0] == "FAIL")


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


def control_plane(house: House, **described: Any) -> Any:
    """The house, and a control plane that describes its endpoint."""
    endpoint = {"EndpointName": "house", "EndpointConfigName": "config-1", "EndpointStatus": "InService", **described}

    def handle(request: Request) -> Reply:
        return answer(endpoint) if request.path == "/" else house(request)

    return handle


@pytest.mark.parametrize(("config", "status"), [("config-1", 0), ("config-2", 1)])
def test_smoke_asks_whether_what_was_deployed_is_live(
    house: House, wire: Wire, capsys: pytest.CaptureFixture[str], config: str, status: int
) -> None:
    wire.handle = control_plane(house)

    assert cli.main([*SMOKE, "--endpoint-config-name", config, "--json"]) == status

    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["name"] for check in checks] == ["endpoint_in_service", "config_is_live", *NAMES]
    assert checks[1]["passed"] is (status == 0)


def test_doctor_looks_at_an_endpoint_where_there_is_no_plan(
    house: House, wire: Wire, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wire.handle = control_plane(house)
    arguments = ["doctor", "--directory", str(tmp_path), "--endpoint-name", "house"]

    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.split()[:2] == ["pass", "endpoint"]
    assert cli.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log"] == []


def test_doctor_without_a_plan_or_an_endpoint_tries_nothing(
    credentials: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["doctor", "--directory", str(tmp_path)]) == 2
    assert "cdk.json" in capsys.readouterr().err


def test_doctor_asks_what_the_plan_needs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"endpoint_name": "house"}}))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    assert cli.main(["doctor", "--directory", str(tmp_path), "--json"]) == 1

    report = json.loads(capsys.readouterr().out)
    assert report["endpoint_name"] == "house"
    assert [report["checks"][at]["name"] for at in (0, -1)] == ["credentials", "endpoint"]
    assert "NoCredentialsError" in report["checks"][0]["detail"]
