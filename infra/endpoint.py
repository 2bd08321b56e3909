"""The SageMaker endpoint: image, execution role, Model, EndpointConfig and Endpoint.

The CDK's experimental L2 knows neither routing, AMI versions, download timeouts nor uncompressed model data, and gives
its role full access: hence the L1 classes. Model and EndpointConfig carry no name of their own, because an update
replaces both and a fixed name would collide with itself.
"""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.aws_ecr_assets import DockerImageAsset, Platform
from constructs import Construct

from infra.config import InfraConfig

REPOSITORY = Path(__file__).resolve().parents[1]
VARIANT_NAME = "AllTraffic"
"""Stable, because autoscaling and metrics are bound to it."""
INVOKE_ACTIONS = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
"""The two runtime calls that take a session id; each has an IAM action of its own."""
METRIC_NAMESPACES = ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]
"""Where SageMaker publishes an endpoint's invocation and instance metrics."""


def container_image(
    scope: Construct, *, directory: Path = REPOSITORY, base_image: str | None = None
) -> DockerImageAsset:
    """The container as an image asset, built when it is published.

    ``.dockerignore`` in ``directory`` lists what goes in; nothing else changes the asset's hash.

    Args:
        scope: The construct that owns the asset.
        directory: The root of the repository.
        base_image: The Dockerfile's ``BASE_IMAGE``; None: its default.
    """
    return DockerImageAsset(
        scope,
        "Image",
        directory=str(directory),
        file="container/Dockerfile",
        build_args={"BASE_IMAGE": base_image} if base_image else None,
        platform=Platform.LINUX_AMD64,  # whatever the machine that builds
    )


class StickyEndpoint(Construct):
    """A SageMaker endpoint that runs the container.

    Attributes:
        role: What SageMaker and the container may do.
        endpoint: The endpoint itself, for what must depend on it.
        endpoint_name: Its name, a token unless the configuration fixes it.
        endpoint_arn: Its ARN.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig) -> None:
        super().__init__(scope, id)
        image = container_image(self, base_image=config.base_image)
        self.role = self._execution_role(config, image)
        model = self._model(config, image)
        endpoint_config = sagemaker.CfnEndpointConfig(
            self, "EndpointConfig", production_variants=[_variant(config, model.attr_model_name)]
        )
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=config.endpoint_name,
            endpoint_config_name=endpoint_config.attr_endpoint_config_name,
            # An update must not undo what autoscaling chose; without autoscaling, the new count is the one meant.
            retain_all_variant_properties=config.autoscales,
        )
        self.endpoint_name = self.endpoint.attr_endpoint_name
        # Ref and not a formatted ARN: SageMaker writes the name in lower case there, and IAM compares letters exactly.
        self.endpoint_arn = self.endpoint.ref

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` call this endpoint, streamed or not, and nothing else."""
        return iam.Grant.add_to_principal(grantee=grantee, actions=INVOKE_ACTIONS, resource_arns=[self.endpoint_arn])

    def _execution_role(self, config: InfraConfig, image: DockerImageAsset) -> iam.Role:
        role = iam.Role(
            self,
            "ExecutionRole",
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
            description="Pulls the image, writes logs and metrics, reads the model.",
        )
        # Pulls from the image's repository. It also adds ecr:GetAuthorizationToken on "*": that call names no resource.
        image.repository.grant_pull(role)
        statements = [_write_logs(self, config.endpoint_name), _write_metrics()]
        if config.model_in_s3:
            statements += _read_model(self, config.model)
        for statement in statements:
            role.add_to_policy(statement)
        return role

    def _model(self, config: InfraConfig, image: DockerImageAsset) -> sagemaker.CfnModel:
        source = sagemaker.CfnModel.ModelDataSourceProperty(
            s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
                s3_uri=config.model,
                s3_data_type="S3Prefix",
                compression_type="None",
            )
        )
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=self.role.role_arn,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=image.image_uri,
                environment=config.environment(),
                model_data_source=source if config.model_in_s3 else None,
            ),
        )
        # With the role comes its policy: SageMaker checks the image and the model data as it makes the Model.
        model.node.add_dependency(self.role)
        return model


def _variant(config: InfraConfig, model_name: str) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=VARIANT_NAME,
        model_name=model_name,
        instance_type=config.instance_type,
        initial_instance_count=config.min_instances,
        initial_variant_weight=1,
        inference_ami_version=config.inference_ami_version,
        container_startup_health_check_timeout_in_seconds=config.container_startup_health_check_timeout_in_seconds,
        model_data_download_timeout_in_seconds=config.model_data_download_timeout_in_seconds,
        routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy=config.routing_strategy),
    )


def _write_logs(scope: Construct, endpoint_name: str | None) -> iam.PolicyStatement:
    # A name that CloudFormation makes is known only after the role is needed: then it is the prefix of all endpoints.
    name = endpoint_name or ""
    log_group = f"/aws/sagemaker/Endpoints/{name}*"
    return iam.PolicyStatement(
        actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        resources=[Stack.of(scope).format_arn(service="logs", resource=f"log-group:{log_group}")],
    )


def _write_metrics() -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=["cloudwatch:PutMetricData"],
        resources=["*"],  # the call names no resource; its namespace is what can be held
        conditions={"StringEquals": {"cloudwatch:namespace": METRIC_NAMESPACES}},
    )


def _read_model(scope: Construct, uri: str) -> list[iam.PolicyStatement]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    bucket_arn = f"arn:{Stack.of(scope).partition}:s3:::{bucket}"
    return [
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket_arn}/{prefix}*"]),
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket_arn],
            conditions={"StringLike": {"s3:prefix": [f"{prefix}*"]}},
        ),
    ]
