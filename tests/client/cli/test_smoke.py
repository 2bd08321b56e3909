from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from sagemaker_sticky import cli
from sagemaker_sticky.cli.smoke import deployed_checks

from tests.client.house import House, control_plane
from tests.client.wire import Wire

SMOKE = ["smoke", "--endpoint-name", "house"]
NAMES = ["session_opens", "session_remembers", "session_streams", "session_recovers", "session_closes"]
ARN = "arn:aws:sagemaker:us-east-1:111122223333:endpoint/house"


def checked(**changed: Any) -> dict[str, tuple[bool, str]]:
    """The checks' results, by name, for an endpoint that the control plane describes so."""
    endpoint = {
        "EndpointName": "house",
        "EndpointArn": ARN,
        "EndpointConfigName": "config-2",
        "EndpointStatus": "InService",
        "CreationTime": 0,
        "LastModifiedTime": 0,
        **changed,
    }
    client = boto3.client("sagemaker", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        for _ in range(2):
            stub.add_response("describe_endpoint", endpoint, {"EndpointName": "house"})
        results = list(deployed_checks(client, "house", "config-2"))
    return {each.name: (each.passed, each.detail) for each in results}


def test_an_endpoint_that_runs_what_was_deployed():
    variants = [{"VariantName": "AllTraffic", "CurrentInstanceCount": 2}]
    assert checked(ProductionVariants=variants) == {
        "endpoint_in_service": (True, "InService, 2 instances"),
        "config_is_live": (True, "config-2"),
    }


def test_a_rolled_back_deployment_is_in_service_with_another_configuration():
    results = checked(EndpointConfigName="config-1")
    assert results["endpoint_in_service"][0]
    assert results["config_is_live"] == (
        False,
        "the endpoint runs config-1, not config-2: SageMaker may have rolled back",
    )


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"EndpointStatus": "Updating"}, "the endpoint is Updating: SageMaker gives no reason"),
        ({"EndpointStatus": "Failed", "FailureReason": "no /ping"}, "the endpoint is Failed: no /ping"),
    ],
)
def test_an_endpoint_that_is_not_in_service_fails_with_its_reason(changed, detail):
    assert checked(**changed)["endpoint_in_service"] == (False, detail)


def test_a_call_that_is_denied_is_a_failed_check():
    client = boto3.client("sagemaker", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        for _ in range(2):
            stub.add_client_error("describe_endpoint", "AccessDeniedException", "not allowed")
        results = list(deployed_checks(client, "house", "config-2"))
    assert [each.passed for each in results] == [False, False]
    assert "not allowed" in results[0].detail


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


@pytest.mark.parametrize(("config", "status"), [("config-1", 0), ("config-2", 1)])
def test_smoke_asks_whether_what_was_deployed_is_live(
    house: House, wire: Wire, capsys: pytest.CaptureFixture[str], config: str, status: int
) -> None:
    wire.handle = control_plane(house)

    assert cli.main([*SMOKE, "--endpoint-config-name", config, "--json"]) == status

    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["name"] for check in checks] == ["endpoint_in_service", "config_is_live", *NAMES]
    assert checks[1]["passed"] is (status == 0)
