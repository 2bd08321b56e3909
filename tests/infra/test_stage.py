import json
import shutil
from pathlib import Path

import pytest
from aws_cdk import App
from sagemaker_sticky.cli.preflight import read_plan

from app import build_app
from infra.config import InfraConfig
from infra.stage import StickyStage, stage_config

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path) -> Path:
    shutil.copy(ROOT / "cdk.json", tmp_path)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "blue.json").write_text(json.dumps({"max_instances": 6, "instance_type": "ml.g6.2xlarge"}))
    return tmp_path


def test_a_stage_wins_over_cdk_json_and_the_command_line_over_both(tree, cdk_json):
    config = stage_config("blue", cdk_json["context"] | {"instance_type": "ml.g6e.2xlarge"}, directory=tree)
    assert config == InfraConfig(max_instances=6, instance_type="ml.g6e.2xlarge")


def test_an_unknown_stage_is_an_error_with_those_that_are_there(tree):
    with pytest.raises(ValueError, match=r"should be a file of stages/ \(blue\), got 'blu' \(did you mean 'blue'\?\)"):
        stage_config("blu", {}, directory=tree)


@pytest.mark.parametrize("name", ["prod", "test"])
def test_the_stages_of_this_repository_are_valid(name, cdk_json):
    app = build_app(cdk_json["context"] | {"stage": name})
    stack = app.node.find_child(f"{name}-StickySglang")
    assert stack.stack_name == f"{name}-StickySglang"
    assert stack.endpoint.endpoint_name == f"{name}-stickysglang" == read_plan(ROOT, stage=name).endpoint_name


def test_a_pipelines_stage_is_the_same_stack():
    assert StickyStage(App(), "prod", config=InfraConfig()).stack.stack_name == "prod-StickySglang"
