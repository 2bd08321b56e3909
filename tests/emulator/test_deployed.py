from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from emulator import podman_run
from emulator.deployed import Deployment, NotDeployed, read_deployment

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/sticky:1"
ENVIRONMENT = {"STICKY_ENGINE": "echo", "SES_TTL_MIN": "7.0"}


@pytest.fixture
def sagemaker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        yield boto3.client("sagemaker", "us-east-1")


def deploy(sagemaker: Any, **variant: Any) -> None:
    role = "arn:aws:iam::123456789012:role/x"
    container = {"Image": IMAGE, "Environment": ENVIRONMENT}
    sagemaker.create_model(ModelName="model", ExecutionRoleArn=role, PrimaryContainer=container)
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": "model",
        "InitialInstanceCount": 3,
        "InstanceType": "ml.m5.large",  # moto's list is an old one
        **variant,
    }
    sagemaker.create_endpoint_config(EndpointConfigName="config", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="chat", EndpointConfigName="config")


def test_a_deployment_is_what_the_control_plane_says(sagemaker):
    deploy(sagemaker, RoutingConfig={"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"})
    assert read_deployment("chat", sagemaker) == Deployment(
        endpoint_name="chat",
        endpoint_config_name="config",
        variant_name="AllTraffic",
        routing_strategy="LEAST_OUTSTANDING_REQUESTS",
        prefix_routing={},
        instances=3,
        image=IMAGE,
        environment=ENVIRONMENT,
    )


def test_prefix_aware_routing_comes_with_its_settings(sagemaker):
    prefix = {"PrefixLength": 2048, "ConcurrencyThreshold": 3}
    deploy(sagemaker, RoutingConfig={"RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": prefix})
    config = read_deployment("chat", sagemaker).emulator_config(image=False)
    found = (config.routing_strategy, config.prefix_length, config.prefix_concurrency_threshold)
    assert found == ("PREFIX_AWARE", 2048, 3)


def test_a_variant_without_a_strategy_has_sagemakers_own(sagemaker):
    deploy(sagemaker)
    assert read_deployment("chat", sagemaker).routing_strategy == "RANDOM"


def test_an_endpoint_that_is_not_there_is_an_error(sagemaker):
    with pytest.raises(NotDeployed, match="no endpoint 'chat'"):
        read_deployment("chat", sagemaker)


def test_an_endpoint_that_failed_gives_its_reason():
    client = boto3.client("sagemaker", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    answer = {
        "EndpointName": "chat",
        "EndpointArn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/chat",
        "EndpointConfigName": "config",
        "EndpointStatus": "Failed",
        "FailureReason": "no capacity",
        "CreationTime": 0,
        "LastModifiedTime": 0,
    }
    with Stubber(client) as stub:
        stub.add_response("describe_endpoint", answer)
        with pytest.raises(NotDeployed, match="'chat' is Failed: no capacity"):
            read_deployment("chat", client)


@pytest.mark.parametrize("image", [True, False])
def test_it_runs_as_the_image_or_as_processes(sagemaker, image):
    deploy(sagemaker)
    config = read_deployment("chat", sagemaker).emulator_config(image=image, startup_seconds=5)
    assert (config.endpoint_name, config.instances, config.engine, config.startup_seconds) == ("chat", 3, "echo", 5)
    assert config.environment == ENVIRONMENT
    assert (config.command == podman_run.command(IMAGE, ENVIRONMENT)) == image
