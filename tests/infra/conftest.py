"""Templates that several tests read are made once: a synth costs about a second."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# aws_cdk starts Node as it is imported: the one of the virtual environment, also where that is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ["PATH"]])

from aws_cdk import Stack
from aws_cdk.assertions import Template

from app import build_app
from container.config import ContainerConfig
from infra.config import InfraConfig
from infra.endpoint import StickyEndpoint

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def template() -> Template:
    """The stack that a user gets who sets nothing."""
    app = build_app({})
    return Template.from_stack(app.node.find_child("StickySglang"))


@pytest.fixture(scope="session")
def endpoint_template() -> Callable[..., Template]:
    """A stack with nothing but a StickyEndpoint of these settings."""

    def make(**settings: Any) -> Template:
        stack = Stack()
        StickyEndpoint(stack, "Sticky", config=InfraConfig(**settings))
        return Template.from_stack(stack)

    return make


@pytest.fixture(scope="session")
def s3_template(endpoint_template: Callable[..., Template]) -> Template:
    return endpoint_template(model="s3://models/qwen/7b/", endpoint_name="chat", min_instances=2, max_instances=2)


@pytest.fixture(scope="session")
def everything_template(endpoint_template: Callable[..., Template]) -> Template:
    """With every option that opens something."""
    return endpoint_template(
        subnet_ids=("subnet-00000001", "subnet-00000002"),
        security_group_ids=("sg-00000001",),
        kms_key_arn="arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555",
        data_capture_s3_uri="s3://captured/chat/",
        alarm_topic_arn="arn:aws:sns:us-east-1:111122223333:alarms",
        container=ContainerConfig(
            hf_token_secret_arn="arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-AbCdEf"
        ),
    )
