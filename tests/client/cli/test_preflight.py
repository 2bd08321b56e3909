"""What would stop a deployment, in moto's account and in stubs of what moto has not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import NoCredentialsError
from sagemaker_sticky.cli import preflight
from sagemaker_sticky.cli.checks import CheckFailed, control_plane_check
from sagemaker_sticky.cli.preflight import Plan, read_plan

from .account import ACCOUNT, Stubbed

ROOT = Path(__file__).resolve().parents[3]


def quota(value: float, plan: Plan) -> str:
    name = f"{plan.instance_type} for endpoint usage"
    answer = {"Quotas": [{"QuotaName": name, "QuotaCode": "L-1", "Value": value}]}
    return preflight.quota_suffices(Stubbed("list_service_quotas", answer, "service-quotas"), plan)


def result(session: boto3.Session, name: str, **settings: Any) -> tuple[bool, str]:
    check = getattr(preflight, name)
    found = control_plane_check(name, lambda: check(session, Plan(**settings)))
    return found.passed, found.detail


def test_without_credentials_every_question_to_aws_is_a_failed_check():
    class Nobody:
        region_name = "us-east-1"

        def client(self, service: str) -> Any:
            raise NoCredentialsError

    results = {each.name: each.passed for each in preflight.preflight(Nobody(), Plan())}
    assert results == {
        "credentials": False,
        "bootstrapped": False,
        "quota_suffices": False,
        "image_is_there": True,
        "model_is_readable": True,
        "token_is_there": True,
    }


def test_the_plan_is_what_cdk_deploy_reads():
    assert read_plan(ROOT) == Plan(endpoint_name="stickysglang")
    production = read_plan(ROOT, stage="prod")
    assert production.endpoint_name == "prod-stickysglang"
    assert production.max_instances == json.loads((ROOT / "stages" / "prod.json").read_text())["max_instances"]


def test_a_stage_that_is_not_there_says_where_it_was_looked_for():
    with pytest.raises(CheckFailed, match=r"there is no .*stages/nope.json"):
        read_plan(ROOT, stage="nope")


def test_credentials_and_region_are_named(session):
    passed, detail = result(session, "credentials")
    assert passed
    assert detail.endswith("in us-east-1")


def test_an_account_that_was_not_bootstrapped_is_told_how(session):
    assert result(session, "bootstrapped") == (False, "this account and region are not bootstrapped: cdk bootstrap")
    ssm = session.client("ssm")
    ssm.put_parameter(Name=preflight.BOOTSTRAP_PARAMETER, Value="5", Type="String")
    assert not result(session, "bootstrapped")[0]
    ssm.put_parameter(Name=preflight.BOOTSTRAP_PARAMETER, Value="30", Type="String", Overwrite=True)
    assert result(session, "bootstrapped") == (True, "bootstrap version 30")


def test_a_quota_for_two_fleets_passes():
    assert quota(8, Plan()) == "ml.g5.2xlarge for endpoint usage: 8 allowed, 4 at most, 8 during an update"


def test_a_quota_for_one_fleet_passes_with_a_warning():
    assert quota(4, Plan()).endswith(
        "an update of the whole fleet fails, use ROLLING or ask for more under Service Quotas (L-1)"
    )


@pytest.mark.parametrize(("allowed", "plan"), [(0, Plan()), (3, Plan()), (1, Plan(max_instances=1))])
def test_a_quota_that_is_too_small_says_by_how_much(allowed, plan):
    with pytest.raises(
        CheckFailed, match=rf"{allowed} allowed, {plan.max_instances} at most, .* during an update: ask"
    ):
        quota(allowed, plan)


def test_a_rolling_update_needs_a_part_more():
    assert Plan(deployment_strategy="ROLLING").instances_in_update(4) == 5


def test_a_type_without_a_quota_is_not_offered():
    account = Stubbed("list_service_quotas", {"Quotas": []}, "service-quotas")
    with pytest.raises(CheckFailed, match="is the type offered in us-east-1"):
        preflight.quota_suffices(account, Plan())


def test_a_ready_image_must_be_in_its_repository(session):
    uri = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/sticky:1"
    assert result(session, "image_is_there", image_uri=uri) == (False, f"{uri} is not there")
    ecr = session.client("ecr")
    ecr.create_repository(repositoryName="sticky")
    assert not result(session, "image_is_there", image_uri=uri)[0]
    media_type = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = json.dumps({"schemaVersion": 2, "mediaType": media_type, "layers": []})
    ecr.put_image(repositoryName="sticky", imageTag="1", imageManifest=manifest)
    assert result(session, "image_is_there", image_uri=uri) == (True, uri)
    assert result(session, "image_is_there") == (True, "cdk deploy builds and pushes it")


def test_a_model_must_lie_uncompressed_under_its_prefix(session):
    s3 = session.client("s3")
    s3.create_bucket(Bucket="models")
    model = "s3://models/qwen/"
    s3.put_object(Bucket="models", Key="qwen/model.tar.gz", Body=b"x")
    passed, detail = result(session, "model_is_readable", model=model)
    assert not passed
    assert "holds no config.json" in detail
    s3.put_object(Bucket="models", Key="qwen/config.json", Body=b"{}")
    assert result(session, "model_is_readable", model=model) == (True, f"{model}: 0.0 GiB in 2 files")
    assert not result(session, "model_is_readable", model="s3://nowhere/qwen/")[0]


def test_the_secret_of_a_gated_model_must_exist(session):
    arn = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:hub-AbCdEf"
    assert not result(session, "token_is_there", hf_token_secret_arn=arn)[0]
    made = session.client("secretsmanager").create_secret(Name="hub", SecretString="x")["ARN"]
    assert result(session, "token_is_there", hf_token_secret_arn=made) == (True, made)
