"""A pipeline that deploys each stage from the repository, updates itself, and smokes a stage before the next one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Acknowledgment, Environment, Stack, Validations, pipelines
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import bounds
from infra.config import InfraConfig
from infra.context import read
from infra.endpoint import INVOKE_ACTIONS
from infra.secrets import shown
from infra.stack import STACK_ID
from infra.stage import StickyStage

NO_ACCESS_LOGS = Acknowledgment(
    id="AwsSolutions::AwsSolutions-S1",
    reason="The bucket holds copies of the repository between two stages; who changed what is in the repository.",
)
PATTERNS = {
    "repository": (r"[\w.-]{1,100}/[\w.-]{1,100}", "owner/name"),
    "connection_arn": (
        r"arn:aws[a-z-]*:(codestar-connections|codeconnections):[a-z0-9-]+:\d{12}:connection/[\w-]+",
        "the ARN of a connection of AWS CodeConnections",
    ),
    "branch": (r"(?=.{1,255}$)(?!.*(\.\.|//|@\{|\.lock$))[\w@+][\w@+./-]*(?<![./])", "the name of a branch"),
    "account": bounds.PATTERNS["account"],
    "region": bounds.PATTERNS["region"],
}
"""Regular expression and its meaning, by field."""
MOST_STAGES = 46
"""CodePipeline has 50, of which source, build, update and assets are four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """Where the code comes from and where it goes: ``pipeline`` in cdk.json, where the pipeline finds it too.

    Raises:
        ValueError: every problem found, in one message.
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
        if problems := list(_problems(self)):
            raise ValueError("; ".join(problems))

    @classmethod
    def from_context(cls, value: Any) -> PipelineConfig:
        """What the context's ``pipeline`` says, an object or its JSON.

        Raises:
            ValueError: every problem found, in one message.
        """
        try:
            return read(cls, value)
        except ValueError as problem:
            raise ValueError(f"'pipeline': {problem}") from None


def _problems(config: PipelineConfig) -> Iterator[str]:
    for name, (pattern, meaning) in PATTERNS.items():
        value = getattr(config, name)
        if value is not None and not re.fullmatch(pattern, value, re.ASCII):
            yield f"'{name}' should be {meaning}, got {shown(value)}"
    if bool(config.account) != bool(config.region):
        yield f"'account' and 'region' should be given together, got {config.account!r} and {config.region!r}"
    if not config.stages:
        yield "'stages' should name at least one file of stages/, got none"
    if len(config.stages) > MOST_STAGES:
        yield f"'stages' should be at most {MOST_STAGES}, got {len(config.stages)}"
    for name in dict.fromkeys(config.stages):
        if config.stages.count(name) > 1:
            yield f"'stages' should name each once, got {name!r} more than once"


def _disagreements(config: PipelineConfig, stages: Mapping[str, InfraConfig]) -> Iterator[str]:
    """What is wrong with stages beside each other and the pipeline."""
    seen: dict[tuple[str | None, str | None, str], str] = {}
    for name, stage in stages.items():
        if (stage.account or stage.region) and not config.account:
            yield f"'pipeline': 'account' and 'region' should be given, as stages/{name}.json has one of its own"
        endpoint = (stage.endpoint_name or f"{name}-{STACK_ID}").lower()
        place = (stage.account or config.account, stage.region or config.region, endpoint)
        if place in seen:
            both = f"stages/{seen[place]}.json and stages/{name}.json"
            yield f"'endpoint_name' should differ in {both} or their 'account' or 'region', got {endpoint!r} in both"
        seen[place] = name


class PipelineStack(Stack):
    """The pipeline, in an account of its own or in that of a stage.

    Args:
        scope: The app.
        id: Name of the stack.
        config: Where the code comes from.
        stages: The configuration of each stage, by name, in the order of deployment.

    Raises:
        ValueError: the stages do not fit the pipeline or each other.
    """

    def __init__(self, scope: Construct, id: str, *, config: PipelineConfig, stages: Mapping[str, InfraConfig]) -> None:
        if problems := list(_disagreements(config, stages)):
            raise ValueError("; ".join(problems))
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
