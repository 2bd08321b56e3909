"""Reads a fleet from SageMaker's control plane: what ``cdk deploy`` created is what starts here.

The one module of the emulator that talks to AWS, or to what stands in for it; boto3 finds it through its own settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator import podman_run
from emulator.config import EmulatorConfig


class NotDeployed(Exception):
    """The endpoint is not there, or not in service; the message has SageMaker's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What SageMaker would start for an endpoint."""

    endpoint_name: str
    endpoint_config_name: str
    variant_name: str
    routing_strategy: str
    prefix_routing: Mapping[str, Any]
    """Its settings where it is PREFIX_AWARE, by the emulator's names."""
    instances: int
    image: str
    environment: Mapping[str, str]

    def emulator_config(self, *, image: bool, **options: Any) -> EmulatorConfig:
        """The emulator that runs this deployment.

        Args:
            image: Start the image, in podman; else the container's code of this checkout, as processes.
            options: Other fields of :class:`EmulatorConfig`.
        """
        if image:
            options["command"] = podman_run.command(self.image, self.environment)
        return EmulatorConfig(
            endpoint_name=self.endpoint_name,
            variant_name=self.variant_name,
            routing_strategy=self.routing_strategy,
            **self.prefix_routing,
            instances=self.instances,
            engine=self.environment.get("STICKY_ENGINE", "sglang"),
            environment=self.environment,
            **options,
        )


def read_deployment(endpoint_name: str, sagemaker: Any) -> Deployment:
    """What the control plane says of an endpoint.

    Args:
        endpoint_name: Of an endpoint with one variant.
        sagemaker: A boto3 client of the service ``sagemaker``.

    Raises:
        NotDeployed: as it says.
    """
    try:
        endpoint = sagemaker.describe_endpoint(EndpointName=endpoint_name)
    except sagemaker.exceptions.ClientError as error:
        raise NotDeployed(f"no endpoint {endpoint_name!r}: {error}") from error
    if endpoint["EndpointStatus"] != "InService":
        reason = endpoint.get("FailureReason", "no reason given")
        raise NotDeployed(f"endpoint {endpoint_name!r} is {endpoint['EndpointStatus']}: {reason}")
    config = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
    (variant,) = config["ProductionVariants"]
    routing = variant.get("RoutingConfig", {})
    prefix = routing.get("PrefixAwareRoutingConfig", {})
    names = {"PrefixLength": "prefix_length", "ConcurrencyThreshold": "prefix_concurrency_threshold"}
    container = sagemaker.describe_model(ModelName=variant["ModelName"])["PrimaryContainer"]
    (live,) = endpoint.get("ProductionVariants") or [{}]
    return Deployment(
        endpoint_name=endpoint_name,
        endpoint_config_name=endpoint["EndpointConfigName"],
        variant_name=variant["VariantName"],
        # SageMaker's own default, where the configuration has none.
        routing_strategy=routing.get("RoutingStrategy", "RANDOM"),
        prefix_routing={ours: prefix[theirs] for theirs, ours in names.items() if theirs in prefix},
        instances=live.get("CurrentInstanceCount") or variant["InitialInstanceCount"],
        image=container["Image"],
        environment=container.get("Environment", {}),
    )
