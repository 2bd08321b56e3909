"""The stack: composes the constructs and says how to use what it made."""

from __future__ import annotations

from aws_cdk import CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.config import InfraConfig
from infra.endpoint import StickyEndpoint
from infra.observability import Dashboard
from infra.scaling import ConcurrencyScaling

STACK_ID = "StickySglang"


class StickyStack(Stack):
    """Everything of one deployment.

    Attributes:
        endpoint: The endpoint, for example to grant others its use.
        endpoint_output: The output with its name, for a pipeline's steps.
        endpoint_config_output: The output with the name of its configuration.
        region_output: The output with its region.
    """

    def __init__(self, scope: Construct, id: str = STACK_ID, *, config: InfraConfig) -> None:
        super().__init__(
            scope,
            id,
            description="SGLang behind a SageMaker endpoint whose sessions are remembered.",
            env=Environment(account=config.account, region=config.region),
        )
        for key, value in config.tags.items():
            Tags.of(self).add(key, value)
        self.endpoint = StickyEndpoint(self, "Sticky", config=config)
        if config.autoscales:
            ConcurrencyScaling(self, "Scaling", config=config, endpoint=self.endpoint)
        name = self.endpoint.endpoint_name
        Dashboard(self, "Dashboard", endpoint_name=name, metrics=self.endpoint.metrics, alarms=self.endpoint.alarms)
        callers = iam.ManagedPolicy(self, "Callers", description=f"Call the SageMaker endpoint {name}.")
        self.endpoint.grant_invoke(callers)
        self.endpoint_output = CfnOutput(self, "EndpointName", value=name)
        self.endpoint_config_output = CfnOutput(self, "EndpointConfigName", value=self.endpoint.endpoint_config_name)
        self.region_output = CfnOutput(self, "Region", value=self.region)
        smoke = f"sticky smoke --endpoint-name {name} --region {self.region}"
        CfnOutput(self, "SmokeCommand", value=f"{smoke} --endpoint-config-name {self.endpoint.endpoint_config_name}")
        attach = "Attach it to who calls the endpoint."
        CfnOutput(self, "CallerPolicyArn", value=callers.managed_policy_arn, description=attach)
