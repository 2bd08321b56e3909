from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from sagemaker_sticky import cli
from sagemaker_sticky.cli import doctor
from sagemaker_sticky.cli.checks import CheckFailed

from tests.client.house import House, control_plane
from tests.client.wire import Wire

from .account import ACCOUNT, Stubbed


def test_a_failed_endpoint_is_shown_with_its_reason():
    answer = {
        "EndpointName": "house",
        "EndpointArn": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/house",
        "EndpointConfigName": "config-1",
        "EndpointStatus": "Failed",
        "FailureReason": "The primary container did not pass the ping health check.",
        "CreationTime": 0,
        "LastModifiedTime": 0,
    }
    with pytest.raises(CheckFailed, match=r"^house is Failed: The primary container did not pass the ping"):
        doctor._status(Stubbed("describe_endpoint", answer, "sagemaker"), "house")


def test_the_last_lines_are_those_of_the_instance_that_wrote_last(session):
    logs = session.client("logs")
    group = doctor.LOG_GROUP.format("house")
    assert doctor.log_tail(session, "house") == []
    logs.create_log_group(logGroupName=group)
    assert doctor.log_tail(session, "house") == []
    for stream, when in (("AllTraffic/i-old", 1), ("AllTraffic/i-new", 2)):
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        now = int(time.time() * 1000)
        events = [{"timestamp": now + when * 1000 + n, "message": f"{stream} line {n}"} for n in range(30)]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    assert doctor.log_tail(session, "house", lines=2) == ["AllTraffic/i-new line 28", "AllTraffic/i-new line 29"]


def test_an_endpoint_that_is_not_there_yet_is_no_problem(session):
    found, lines = doctor.endpoint_health(session, "house")
    assert (found.passed, found.detail, lines) == (True, "house is not there yet", [])


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
