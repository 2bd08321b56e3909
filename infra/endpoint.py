"""The SageMaker endpoint: image, execution role, Model, EndpointConfig, alarms and Endpoint.

The CDK's experimental L2 knows neither routing, AMI versions, download timeouts nor uncompressed model data, and gives
its role full access: hence the L1 classes. Model and EndpointConfig carry no name of their own, because an update
replaces both and a fixed name would collide with itself.
"""

from __future__ import annotations

import re
from pathlib import Path

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.aws_ecr_assets import DockerImageAsset, Platform
from constructs import Construct

from infra.bounds import PATTERNS
from infra.config import InfraConfig
from infra.deployment import deployment_config
from infra.metrics import EndpointMetrics, container_namespace
from infra.observability import Alarms
from infra.role import ExecutionRole
from infra.variant import VARIANT_NAME, data_capture, production_variant

REPOSITORY = Path(__file__).resolve().parents[1]
INVOKE_ACTIONS = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
"""The two runtime calls that take a session id; each has an IAM action of its own."""


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
        endpoint_name: Its name.
        endpoint_config_name: The name of the configuration that it should run, which SageMaker makes.
        endpoint_arn: Its ARN.
        metrics: All its metrics.
        alarms: Its alarms.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig) -> None:
        super().__init__(scope, id)
        stack = Stack.of(self)
        self.endpoint_name = _endpoint_name(config, stack)
        namespace = container_namespace(stack.stack_name)
        self.metrics = EndpointMetrics(endpoint_name=self.endpoint_name, variant_name=VARIANT_NAME, namespace=namespace)
        # SageMaker would make it itself, keep it for ever, and leave it behind.
        log_group = logs.CfnLogGroup(
            self,
            "Log",
            log_group_name=f"/aws/sagemaker/Endpoints/{self.endpoint_name}",
            retention_in_days=config.log_retention_days,
        )
        log_group.apply_removal_policy(RemovalPolicy.DESTROY)
        image_uri, repository = self._image(config)
        self.role = ExecutionRole(
            self, "ExecutionRole", config=config, endpoint_name=self.endpoint_name, repository=repository
        )
        model = self._model(config, image_uri, namespace)
        endpoint_config = sagemaker.CfnEndpointConfig(
            self,
            "EndpointConfig",
            production_variants=[production_variant(config, model.attr_model_name)],
            data_capture_config=data_capture(config),
            kms_key_id=config.volume_kms_key_arn,
        )
        self.endpoint_config_name = endpoint_config.attr_endpoint_config_name
        self.alarms = Alarms(self, "Alarms", config=config, metrics=self.metrics)
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=self.endpoint_name,
            endpoint_config_name=self.endpoint_config_name,
            deployment_config=deployment_config(config, self.alarms.rollback),
            # An update must not undo what autoscaling chose: true wherever there is scaling. Without it, the new count
            # is the one meant.
            retain_all_variant_properties=config.autoscales,
        )
        # Gone before its log, which it would make anew, and before what lets its instances write.
        self.endpoint.node.add_dependency(log_group, self.role.node.find_child("DefaultPolicy"))
        # Ref and not a formatted ARN: SageMaker writes the name in lower case there, and IAM compares letters exactly.
        self.endpoint_arn = self.endpoint.ref

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` call this endpoint, streamed or not, and nothing else."""
        return iam.Grant.add_to_principal(grantee=grantee, actions=INVOKE_ACTIONS, resource_arns=[self.endpoint_arn])

    def metric_invocations(self) -> cloudwatch.Metric:
        """Calls a minute."""
        return self.metrics.invocation("Invocations")

    def metric_latency(self, statistic: str = "p90") -> cloudwatch.Metric:
        """How long the container takes, in microseconds."""
        return self.metrics.invocation("ModelLatency", statistic=statistic)

    def metric_overhead(self, statistic: str = "p90") -> cloudwatch.Metric:
        """What SageMaker adds to that, in microseconds."""
        return self.metrics.invocation("OverheadLatency", statistic=statistic)

    def metric_model_errors(self) -> cloudwatch.MathExpression:
        """Share of calls that fail in the container, in percent."""
        return self.metrics.model_error_percent()

    def metric_first_token(self, statistic: str = "p90") -> cloudwatch.Metric:
        """How long a turn waits for its first token, in seconds."""
        return self.metrics.container("TimeToFirstToken", statistic=statistic)

    def metric_open_sessions(self) -> cloudwatch.Metric:
        """Open sessions on the fullest instance."""
        return self.metrics.container("OpenSessions", statistic="Maximum")

    def metric_gpu_memory(self) -> cloudwatch.Metric:
        """GPU memory in use on the fullest instance, in percent, a hundred for each GPU."""
        return self.metrics.instance("GPUMemoryUtilization", statistic="Maximum")

    def _model(self, config: InfraConfig, image_uri: str, namespace: str) -> sagemaker.CfnModel:
        vpc = sagemaker.CfnModel.VpcConfigProperty(
            subnets=list(config.subnet_ids), security_group_ids=list(config.security_group_ids)
        )
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=self.role.role_arn,
            enable_network_isolation=config.enable_network_isolation,
            vpc_config=vpc if config.subnet_ids else None,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=image_uri,
                environment=config.environment(metrics_namespace=namespace),
                model_data_source=_model_data(config.model) if config.model_in_s3 else None,
            ),
        )
        # The policy and not only the role: SageMaker checks the image and the model data as it makes the Model.
        model.node.add_dependency(self.role.node.find_child("DefaultPolicy"))
        return model

    def _image(self, config: InfraConfig) -> tuple[str, ecr.IRepository]:
        if not config.image_uri:
            image = container_image(self, base_image=config.base_image)
            return image.image_uri, image.repository
        registry, _, name = config.image_uri.partition("/")
        account, _, _, region = registry.split(".")[:4]
        name = re.split("[:@]", name)[0]
        arn = Stack.of(self).format_arn(
            service="ecr", region=region, account=account, resource="repository", resource_name=name
        )
        repository = ecr.Repository.from_repository_attributes(
            self, "Repository", repository_arn=arn, repository_name=name
        )
        return config.image_uri, repository


def _endpoint_name(config: InfraConfig, stack: Stack) -> str:
    # Lower case, as SageMaker writes names in ARNs.
    name = config.endpoint_name or stack.stack_name.lower()
    pattern, meaning = PATTERNS["endpoint_name"]
    if not re.fullmatch(pattern, name):
        raise ValueError(f"'endpoint_name' should be given, as the stack's name {name!r} is not {meaning}")
    return name


def _model_data(uri: str) -> sagemaker.CfnModel.ModelDataSourceProperty:
    source = sagemaker.CfnModel.S3DataSourceProperty(s3_uri=uri, s3_data_type="S3Prefix", compression_type="None")
    return sagemaker.CfnModel.ModelDataSourceProperty(s3_data_source=source)
