import json
import os
import subprocess
from pathlib import Path

import pytest
from aws_cdk import Stack
from aws_cdk.assertions import Template

from app import build_app
from infra.endpoint import container_image

ROOT = Path(__file__).resolve().parents[2]


def cdk_synth(*arguments: str, output: Path, directory: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """``cdk synth`` as a user runs it, with neither an AWS account nor Docker to be found."""
    environment = {
        # conftest puts the virtual environment's cdk, node and python3 first.
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],  # caches
        "CDK_DOCKER": "false",  # the command that always fails
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    command = ["cdk", "synth", "--quiet", "--no-notices", "--output", str(output), *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment, text=True, capture_output=True, timeout=120, check=False
    )


def test_context_reaches_the_stack():
    app = build_app({"instance_type": "ml.g6.xlarge", "max_sessions": 9})
    template = Template.from_stack(app.node.find_child("StickySglang"))
    variant = {"ProductionVariants": [{"InstanceType": "ml.g6.xlarge"}]}
    template.has_resource_properties("AWS::SageMaker::EndpointConfig", variant)
    environment = {"PrimaryContainer": {"Environment": {"MAX_SESSIONS": "9"}}}
    template.has_resource_properties("AWS::SageMaker::Model", environment)


@pytest.mark.parametrize("key", ["max_instance", "max-instances"])
def test_a_key_that_nobody_reads_is_refused(key):
    with pytest.raises(ValueError, match=rf"'{key}' is not a setting \(did you mean 'max_instances'\?\)"):
        build_app({key: 2})


@pytest.mark.parametrize("key", ["stage", "pipeline"])
def test_a_choice_that_is_empty_is_refused(key):
    """As in `-c stage=$STAGE` where nobody has set it: the default stack is not what was meant."""
    with pytest.raises(ValueError, match="got ''"):
        build_app({key: ""})


def test_keys_of_the_cdk_reach_the_cdk():
    app = build_app({"@aws-cdk/core:bootstrapQualifier": "mine"})
    rules = Template.from_stack(app.node.find_child("StickySglang")).to_json()["Parameters"]
    assert rules["BootstrapVersion"]["Default"] == "/cdk-bootstrap/mine/version"


def test_cdk_synth_needs_neither_account_nor_docker_and_the_command_line_wins(tmp_path):
    done = cdk_synth("-c", "max_instances=2", output=tmp_path)
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "StickySglang.template.json").read_text())
    assert template["Resources"]["ScalingTarget6760FBAF"]["Properties"]["MaxCapacity"] == 2
    # The same image in another process: its tag depends on the content alone.
    image = template["Resources"]["StickyModel086319BA"]["Properties"]["PrimaryContainer"]["Image"]["Fn::Sub"]
    assert image.endswith(":" + container_image(Stack()).asset_hash)


def test_cdk_synth_says_what_is_wrong_in_one_line(tmp_path):
    done = cdk_synth("-c", "min_instances=0", output=tmp_path)
    assert done.returncode != 0
    assert "Not a valid configuration: 'min_instances' should be from 1 to 10000, got 0: scaling to zero" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_setting_in_cdk_json_is_refused_as_it_would_win_over_a_stage(tmp_path):
    for each in ("app.py", "infra", "container", "client", "stages"):
        (tmp_path / each).symlink_to(ROOT / each)
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "python3 app.py", "context": {"max_instances": 2}}))
    done = cdk_synth("-c", "stage=prod", output=tmp_path / "out", directory=tmp_path)
    assert done.returncode != 0
    assert "Not a valid configuration: cdk.json: 'context' should hold no setting, got 'max_instances'" in done.stderr
