"""A pipeline that deploys each stage from the repository, updates itself, and smokes a stage before the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Acknowledgment, Environment, Stack, Validations, pipelines
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.config import InfraConfig
from infra.endpoint import INVOKE_ACTIONS
from infra.stage import StickyStage

NO_ACCESS_LOGS = Acknowledgment(
    id="AwsSolutions::AwsSolutions-S1",
    reason="The bucket holds copies of the repository between two stages; who changed what is in the repository.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """Where the code comes from and where it goes: ``pipeline`` in cdk.json, where the pipeline finds it too.

    Raises:
        ValueError: no stage is named.
    """

    repository: str
    """``owner/name``."""
    connection_arn: str
    """Connection of AWS CodeConnections to the repository's host."""
    stages: tuple[str, ...]
    """Names of files in ``stages/``, in the order of deployment."""
    branch: str = "main"
    account: str | None = None
    """Account of the pipeline itself. Default: that of the credentials that deploy it; needed where a stage has one."""
    region: str | None = None
    """Region of the pipeline itself. Default: as above."""

    def __post_init__(self) -> None:
        """Check every field."""
        if not self.stages:
            raise ValueError("'stages' should name at least one file of stages/, got none")


class PipelineStack(Stack):
    """The pipeline, in an account of its own or in that of a stage.

    Args:
        scope: The app.
        id: Name of the stack.
        config: Where the code comes from.
        stages: The configuration of each stage, by name, in the order of deployment.
    """

    def __init__(self, scope: Construct, id: str, *, config: PipelineConfig, stages: Mapping[str, InfraConfig]) -> None:
        super().__init__(
            scope,
            id,
            env=Environment(account=config.account, region=config.region),
            description="Deploys the stages of sagemaker-sticky-sglang.",
        )
        source = pipelines.CodePipelineSource.connection(
            config.repository, config.branch, connection_arn=config.connection_arn
        )
        synth = pipelines.ShellStep(
            "Synth", input=source, commands=["make setup ENGINE=echo", ".venv/bin/cdk synth --quiet"]
        )
        pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            synth=synth,
            cross_account_keys=True,
            enable_key_rotation=True,
            pipeline_type=codepipeline.PipelineType.V2,
        )
        for name, settings in stages.items():
            stage = StickyStage(self, name, config=settings)
            pipeline.add_stage(stage, post=[self._smoke(stage, source)])
        Validations.of(pipeline).acknowledge(NO_ACCESS_LOGS)  # for whoever checks the stack with cdk-nag

    def _smoke(self, stage: StickyStage, source: pipelines.CodePipelineSource) -> pipelines.CodeBuildStep:
        stack = stage.stack
        endpoint = self.format_arn(
            service="sagemaker",
            account=stack.account,
            region=stack.region,
            resource="endpoint",
            resource_name=stack.endpoint.endpoint_name.lower(),  # as SageMaker writes it in ARNs
        )
        smoke = 'sticky smoke --endpoint-name "$ENDPOINT" --endpoint-config-name "$CONFIG" --region "$REGION"'
        return pipelines.CodeBuildStep(
            f"Smoke-{stage.node.id}",
            input=source,
            commands=["pip install './client[cli]'", smoke],
            env_from_cfn_outputs={
                "ENDPOINT": stack.endpoint_output,
                "CONFIG": stack.endpoint_config_output,
                "REGION": stack.region_output,
            },
            role_policy_statements=[
                iam.PolicyStatement(actions=[*INVOKE_ACTIONS, "sagemaker:DescribeEndpoint"], resources=[endpoint])
            ],
        )
