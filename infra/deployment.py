"""How an update reaches the instances, and when it is rolled back."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker

from infra.config import InfraConfig

Endpoint = sagemaker.CfnEndpoint


def deployment_config(
    config: InfraConfig, rollback_alarms: Sequence[cloudwatch.Alarm]
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
    """SageMaker's deployment guardrails: a strategy, and alarms that end it by going back to the old fleet."""
    blue_green = rolling = None
    size = Endpoint.CapacitySizeProperty(type="CAPACITY_PERCENT", value=config.deployment_step_percent)
    if config.deployment_strategy == "ROLLING":
        rolling = Endpoint.RollingUpdatePolicyProperty(
            maximum_batch_size=size, wait_interval_in_seconds=config.deployment_wait_seconds
        )
    else:
        blue_green = Endpoint.BlueGreenUpdatePolicyProperty(
            traffic_routing_configuration=Endpoint.TrafficRoutingConfigProperty(
                type=config.deployment_strategy,
                canary_size=size if config.deployment_strategy == "CANARY" else None,
                linear_step_size=size if config.deployment_strategy == "LINEAR" else None,
                wait_interval_in_seconds=config.deployment_wait_seconds,
            ),
            termination_wait_in_seconds=config.deployment_termination_wait_seconds,
        )
    return Endpoint.DeploymentConfigProperty(
        blue_green_update_policy=blue_green,
        rolling_update_policy=rolling,
        auto_rollback_configuration=Endpoint.AutoRollbackConfigProperty(
            alarms=[Endpoint.AlarmProperty(alarm_name=each.alarm_name) for each in rollback_alarms]
        ),
    )
