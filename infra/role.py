"""The execution role: what SageMaker and the container may do, and nothing more.

No managed policy: AmazonSageMakerFullAccess, which samples attach, opens every endpoint of the account.
"""

from __future__ import annotations

import re

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.config import InfraConfig

METRIC_NAMESPACES = ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]
"""Where SageMaker publishes an endpoint's invocation and instance metrics."""
WILDCARD_REASONS = {
    "^.$": "ecr:GetAuthorizationToken, cloudwatch:PutMetricData and ec2:Describe... name no resource: AWS has only *.",
    ":log-stream:.$": "SageMaker names the streams of the endpoint's log, one for each instance, as instances start.",
    ":s3:::.*/.$": "A model, and what is captured, are objects under the prefix, whose names the stack does not know.",
    ":network-interface/.$": "The id of an interface is known only when it is there.",
}
"""Why a resource ends in an asterisk, by a pattern of the resource."""


class ExecutionRole(iam.Role):
    """The role of one endpoint, made for its configuration."""

    def __init__(
        self, scope: Construct, id: str, *, config: InfraConfig, endpoint_name: str, repository: ecr.IRepository
    ) -> None:
        super().__init__(
            scope,
            id,
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
            description="Pulls the image, writes logs and metrics, reads the model.",
        )
        # It also adds ecr:GetAuthorizationToken on "*".
        repository.grant_pull(self)
        wildcards = {"*"}
        for statement in _statements(Stack.of(self), config, endpoint_name):
            self.add_to_policy(statement)
            wildcards |= {each for each in statement.resources if each.endswith("*")}
        # For whoever checks the stack with cdk-nag, which asks why for each of them.
        acknowledged = (_acknowledgment(Stack.of(self), each) for each in sorted(wildcards))
        Validations.of(self).acknowledge(*acknowledged)


def _statements(stack: Stack, config: InfraConfig, endpoint_name: str) -> list[iam.PolicyStatement]:
    statements = [_write_logs(stack, endpoint_name), _write_metrics()]
    if config.model_in_s3:
        statements += _read_prefix(stack, config.model)
    if config.container.hf_token_secret_arn:
        statements.append(_allow(["secretsmanager:GetSecretValue"], config.container.hf_token_secret_arn))
    if config.data_capture_s3_uri:
        statements.append(_allow(["s3:PutObject"], _objects(stack, config.data_capture_s3_uri)))
    if config.kms_key_arn:
        # Decrypt for model data, GenerateDataKey for captured data.
        statements.append(_allow(["kms:Decrypt", "kms:GenerateDataKey"], config.kms_key_arn))
    if config.subnet_ids:
        statements += _use_vpc(stack, config)
    return statements


def _acknowledgment(stack: Stack, resource: str) -> Acknowledgment:
    reason = next(reason for pattern, reason in WILDCARD_REASONS.items() if re.search(pattern, resource))
    resolved = stack.resolve(resource)
    parts = [resolved] if isinstance(resolved, str) else resolved["Fn::Join"][1]
    name = "".join(each if isinstance(each, str) else f"<{each['Ref']}>" for each in parts)
    return Acknowledgment(id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{name}]", reason=reason)


def _allow(actions: list[str], *resources: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=list(resources))


def _write_logs(stack: Stack, endpoint_name: str) -> iam.PolicyStatement:
    log_group = stack.format_arn(service="logs", resource=f"log-group:/aws/sagemaker/Endpoints/{endpoint_name}")
    actions = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    return _allow(actions, log_group, f"{log_group}:log-stream:*")


def _write_metrics() -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=["cloudwatch:PutMetricData"],
        resources=["*"],
        conditions={"StringEquals": {"cloudwatch:namespace": METRIC_NAMESPACES}},
    )


def _read_prefix(stack: Stack, uri: str) -> list[iam.PolicyStatement]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    list_prefix = iam.PolicyStatement(
        actions=["s3:ListBucket"],
        resources=[f"arn:{stack.partition}:s3:::{bucket}"],
        conditions={"StringLike": {"s3:prefix": [f"{prefix}*"]}},
    )
    return [_allow(["s3:GetObject"], _objects(stack, uri)), list_prefix]


def _objects(stack: Stack, uri: str) -> str:
    return f"arn:{stack.partition}:s3:::{uri.removeprefix('s3://')}*"


def _use_vpc(stack: Stack, config: InfraConfig) -> list[iam.PolicyStatement]:
    """Network interfaces in the given subnets; the actions are those that SageMaker's guide lists for a VPC."""

    def arn(resource: str, name: str) -> str:
        return stack.format_arn(service="ec2", resource=resource, resource_name=name)

    interfaces = arn("network-interface", "*")
    places = [arn("subnet", each) for each in config.subnet_ids]
    groups = [arn("security-group", each) for each in config.security_group_ids]
    describe = ["NetworkInterfaces", "Vpcs", "DhcpOptions", "Subnets", "SecurityGroups"]
    changes = ["CreateNetworkInterfacePermission", "DeleteNetworkInterface", "DeleteNetworkInterfacePermission"]
    return [
        _allow(["ec2:CreateNetworkInterface"], interfaces, *places, *groups),
        _allow([f"ec2:{each}" for each in changes], interfaces),
        _allow([f"ec2:Describe{each}" for each in describe], "*"),
    ]
