"""What would stop a deployment: its plan, from cdk.json and ``stages/NAME.json``, and what AWS says of each part."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from .checks import CheckFailed, CheckResult, control_plane_check

if TYPE_CHECKING:
    import boto3

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6
"""Oldest bootstrap stack that the CDK deploys through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be deployed, as far as it can be asked about. The defaults are the stack's own."""

    endpoint_name: str | None = None
    model: str = "Qwen/Qwen2.5-7B-Instruct"
    image_uri: str | None = None
    hf_token_secret_arn: str = ""
    instance_type: str = "ml.g5.2xlarge"
    min_instances: int = 1
    max_instances: int = 4
    deployment_strategy: str = "ALL_AT_ONCE"
    deployment_step_percent: int = 25

    def instances_in_update(self, fleet: int) -> int:
        """Instances that are up at once while a fleet of this size is updated."""
        if self.deployment_strategy == "ROLLING":
            return fleet + math.ceil(fleet * self.deployment_step_percent / 100)
        return 2 * fleet


def read_plan(directory: Path, *, stage: str | None = None) -> Plan:
    """The plan in cdk.json, with a stage's file over it.

    Raises:
        CheckFailed: A file is missing.
    """
    files = [directory / "cdk.json"] + ([directory / "stages" / f"{stage}.json"] if stage else [])
    settings: dict[str, Any] = {}
    for file in files:
        if not file.exists():
            raise CheckFailed(f"there is no {file}: run this where cdk.json is")
        found = json.loads(file.read_text())
        settings |= found.get("context", {}) if file.name == "cdk.json" else found
    known = {each.name for each in fields(Plan)}
    plan = Plan(**{key: value for key, value in settings.items() if key in known})
    # As the stack names it where no name is given: after itself.
    default = f"{stage}-stickysglang" if stage else "stickysglang"
    return replace(plan, endpoint_name=plan.endpoint_name or default)


def preflight(session: boto3.session.Session, plan: Plan) -> Iterator[CheckResult]:
    """Everything that can be known before a deployment, one check after the other."""
    for check in (credentials, bootstrapped, quota_suffices, image_is_there, model_is_readable, token_is_there):
        yield control_plane_check(check.__name__, partial(check, session, plan))


def credentials(session: boto3.session.Session, plan: Plan) -> str:
    """There are credentials and a region."""
    if not session.region_name:
        raise CheckFailed("no region: set AWS_REGION or give --region")
    caller = session.client("sts").get_caller_identity()
    return f"{caller['Arn']} in {session.region_name}"


def bootstrapped(session: boto3.session.Session, plan: Plan) -> str:
    """The CDK can deploy to this account and region."""
    try:
        version = int(session.client("ssm").get_parameter(Name=BOOTSTRAP_PARAMETER)["Parameter"]["Value"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterNotFound":
            raise
        raise CheckFailed("this account and region are not bootstrapped: cdk bootstrap") from error
    if version < BOOTSTRAP_VERSION:
        raise CheckFailed(f"the bootstrap stack has version {version}, {BOOTSTRAP_VERSION} is needed: cdk bootstrap")
    return f"bootstrap version {version}"


def quota_suffices(session: boto3.session.Session, plan: Plan) -> str:
    """The account may run the fleet, and the second one beside it while it is updated."""
    name = f"{plan.instance_type} for endpoint usage"
    pages = session.client("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
    found = next((each for page in pages for each in page["Quotas"] if each["QuotaName"] == name), None)
    if found is None:
        raise CheckFailed(f"there is no quota {name!r}: is the type offered in {session.region_name}?")
    allowed = int(found["Value"])
    least, most = plan.instances_in_update(plan.min_instances), plan.instances_in_update(plan.max_instances)
    wanted = f"{plan.max_instances} at most, {most} during an update"
    ask = f"ask for more under Service Quotas ({found['QuotaCode']})"
    if allowed < max(plan.max_instances, least):
        raise CheckFailed(f"{name}: {allowed} allowed, {wanted}: {ask}")
    short = "" if allowed >= most else f"; an update of the whole fleet fails, use ROLLING or {ask}"
    return f"{name}: {allowed} allowed, {wanted}{short}"


def image_is_there(session: boto3.session.Session, plan: Plan) -> str:
    """A ready image is in its repository."""
    if not plan.image_uri:
        return "cdk deploy builds and pushes it"
    registry, _, name = plan.image_uri.partition("/")
    repository, _, digest = name.partition("@")
    repository, _, tag = repository.partition(":")
    image = {"imageDigest": digest} if digest else {"imageTag": tag}
    account, _, _, region = registry.split(".")[:4]
    ecr = session.client("ecr", region_name=region)
    try:
        ecr.describe_images(registryId=account, repositoryName=repository, imageIds=[image])
    except (ecr.exceptions.ImageNotFoundException, ecr.exceptions.RepositoryNotFoundException) as error:
        raise CheckFailed(f"{plan.image_uri} is not there") from error
    return plan.image_uri


def model_is_readable(session: boto3.session.Session, plan: Plan) -> str:
    """A model in S3 is where it should be, uncompressed."""
    if not plan.model.startswith("s3://"):
        return f"each instance downloads {plan.model} from the hub"
    bucket, _, prefix = plan.model.removeprefix("s3://").partition("/")
    listed = session.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1000)
    names = {each["Key"].removeprefix(prefix): each["Size"] for each in listed.get("Contents", [])}
    if "config.json" not in names:
        raise CheckFailed(f"{plan.model} holds no config.json: the model's files should lie there, uncompressed")
    return f"{plan.model}: {sum(names.values()) / 2**30:.1f} GiB in {len(names)} files"


def token_is_there(session: boto3.session.Session, plan: Plan) -> str:
    """The secret with the hub token exists; its value is not read."""
    if not plan.hf_token_secret_arn:
        return "no token is asked for"
    session.client("secretsmanager").describe_secret(SecretId=plan.hf_token_secret_arn)
    return plan.hf_token_secret_arn
