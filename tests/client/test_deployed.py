from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from sagemaker_sticky._deployed import deployed_checks

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
