"""The stack: composes the constructs and says how to use what it made."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.config import InfraConfig
from infra.endpoint import StickyEndpoint
from infra.scaling import ConcurrencyScaling


class StickyStack(Stack):
    """Everything of one deployment.

    Attributes:
        endpoint: The endpoint, for example to grant others its use.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig) -> None:
        super().__init__(scope, id, description="SGLang behind a SageMaker endpoint whose sessions are remembered.")
        self.endpoint = StickyEndpoint(self, "Sticky", config=config)
        if config.autoscales:
            ConcurrencyScaling(self, "Scaling", config=config, endpoint=self.endpoint)
        name = self.endpoint.endpoint_name
        CfnOutput(self, "EndpointName", value=name)
        CfnOutput(self, "Region", value=self.region)
        CfnOutput(self, "SmokeCommand", value=f"sticky smoke --endpoint-name {name} --region {self.region}")
