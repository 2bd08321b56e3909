from aws_cdk import App

from infra.config import InfraConfig
from infra.stage import StickyStage


def test_a_pipelines_stage_is_the_stack_under_its_name():
    assert StickyStage(App(), "prod", config=InfraConfig()).stack.stack_name == "prod-StickySglang"
