"""Every option on and off: the CDK's own validation, cdk-nag's AwsSolutions rules and cfn-lint find nothing."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Validations
from aws_cdk import aws_iam as iam
from cdk_nag import AwsSolutionsChecks

from infra.context import read_config
from infra.pipeline import PipelineConfig, PipelineStack
from infra.stack import StickyStack
from infra.stage import StickyStage

ACCOUNT = "111122223333"
S3 = {"model": "s3://models/qwen/7b/"}
VPC = {"subnet_ids": "subnet-00000001,subnet-00000002", "security_group_ids": "sg-00000001"}
CAPTURE = {"data_capture_s3_uri": "s3://captured/chat/", "data_capture_percent": 10}
KMS = {"kms_key_arn": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-0000-1111-2222-333344445555"}
TOPIC = {"alarm_topic_arn": f"arn:aws:sns:us-east-1:{ACCOUNT}:alarms"}
SECRET = {"hf_token_secret_arn": f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:hub-AbCdEf"}
PREFIX = {"routing_strategy": "PREFIX_AWARE", "min_instances": 2}
SCHEDULES = {"schedules": [{"cron": "0 8 ? * MON-FRI *", "min_instances": 2, "max_instances": 6}]}
FIXED = {"min_instances": 2, "max_instances": 2}
TENSOR = {"instance_type": "ml.g5.12xlarge", "engine_arguments": {"tp_size": 4}, "model_size_gib": 60}

MATRIX: dict[str, dict[str, Any]] = {
    "default": {},
    "named": {"endpoint_name": "chat"},
    "tags": {"tags": {"team": "chat"}},
    "s3": S3,
    "isolated": S3 | {"enable_network_isolation": True},
    "vpc": VPC,
    "isolated-vpc": S3 | VPC | {"enable_network_isolation": True},
    "secret": SECRET,
    "base-image": {"base_image": "lmsysorg/sglang:v0.5.23-cu129"},
    "image-uri": {"image_uri": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/sticky:1.0-cu130"},
    "ami": {"image_uri": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/sticky:1", "cuda_version": "12.2"},
    "random": {"routing_strategy": "RANDOM"},
    "prefix": PREFIX,
    "fixed": FIXED,
    "schedules": SCHEDULES,
    "canary": {"deployment_strategy": "CANARY"},
    "linear": {"deployment_strategy": "LINEAR"},
    "rolling": {"deployment_strategy": "ROLLING"},
    "topic": TOPIC,
    "capture": CAPTURE,
    "capture-kms": CAPTURE | KMS,
    "s3-kms": S3 | KMS,
    "pools": {"fallback_instance_types": ["ml.g6.2xlarge", "ml.g5.4xlarge"]},
    "tensor-parallel": TENSOR,
    "placed": {"account": ACCOUNT, "region": "eu-central-1"},
    "placed-s3-vpc": S3 | VPC | {"account": ACCOUNT, "region": "eu-central-1"},
    "everything": S3 | VPC | CAPTURE | KMS | TOPIC | SECRET | PREFIX | SCHEDULES | TENSOR | {"tags": {"team": "chat"}},
}


@pytest.fixture(scope="module")
def templates(tmp_path_factory) -> Path:
    """All templates; the CDK fails the synth where a rule of cdk-nag finds something that has no reason."""
    directory = tmp_path_factory.mktemp("matrix")
    app = App(outdir=str(directory), context={"@aws-cdk/core:validateAgainstDefaultRules": True})
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    for name, settings in MATRIX.items():
        StickyStack(app, name, config=read_config(settings))
    StickyStage(app, "stage", config=read_config({}))
    app.synth()
    return directory


def violations(directory: Path) -> Iterator[str]:
    report = json.loads((directory / "validation-report.json").read_text())
    for plugin in report["pluginReports"]:
        for each in plugin["violations"]:
            yield f"{plugin['pluginName']}: {each['ruleName']}: {each['description']}"


def test_the_cdk_and_cdk_nag_find_nothing(templates):
    assert list(violations(templates)) == []


def test_cfn_lint_finds_nothing(templates):
    files = [str(each) for each in sorted(templates.rglob("*.template.json"))]
    assert len(files) == len(MATRIX) + 1 > 20
    halves = [
        subprocess.Popen(["cfn-lint", *files[half::2]], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for half in range(2)
    ]
    assert [(each.communicate(timeout=120)[0], each.returncode) for each in halves] == [("", 0), ("", 0)]


def test_of_a_pipeline_only_the_grants_of_cdk_pipelines_are_found(tmp_path):
    """Its artifacts, the logs and reports of its builds, the bootstrap roles; and how it writes joins and orders."""
    app = App(outdir=str(tmp_path))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    connection = f"arn:aws:codeconnections:us-east-1:{ACCOUNT}:connection/1"
    pipeline = PipelineConfig(repository="team/chat", connection_arn=connection, stages=("test", "prod"))
    PipelineStack(app, "pipeline", config=pipeline, stages={name: read_config({}) for name in pipeline.stages})
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    found = list(violations(tmp_path))
    assert [each for each in found if not each.startswith("AwsSolutions: AwsSolutions-IAM5[")] == []
    lint = ["cfn-lint", "--ignore-checks", "E3703", "W3005", "--", str(tmp_path / "pipeline.template.json")]
    assert subprocess.run(lint, text=True, capture_output=True, check=False).stdout == ""


def test_cdk_nag_does_look(tmp_path):
    """A wildcard without a reason ends the synth."""
    app = App(outdir=str(tmp_path))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stack = StickyStack(app, config=read_config({}))
    stack.endpoint.role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=["*"]))
    stack.endpoint.role.add_to_policy(iam.PolicyStatement(actions=["s3:*"], resources=["arn:aws:s3:::models"]))
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    assert any("AwsSolutions-IAM5[Action::s3:*]" in each for each in violations(tmp_path))
