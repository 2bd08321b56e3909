"""What says that nothing is left must see what is."""

import boto3
import pytest
from moto import mock_aws

from tests.rehearsal import tools
from tests.rehearsal.account import inventory, leftovers


@pytest.fixture
def session(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


def test_an_empty_account_has_nothing(session):
    assert leftovers(inventory(session)) == []


def test_what_is_left_is_named_and_what_bootstrapping_made_is_not(session):
    iam = session.client("iam")
    for name in ("cdk-hnb659fds-deploy-role", "StickySglang-Role"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    session.client("logs").create_log_group(logGroupName="/aws/sagemaker/Endpoints/chat")
    session.client("cloudwatch").put_dashboard(DashboardName="chat", DashboardBody='{"widgets": []}')
    assert leftovers(inventory(session)) == [
        "dashboards: chat",
        "log groups: /aws/sagemaker/Endpoints/chat",
        "roles: StickySglang-Role",
    ]


def test_missing_tools_come_with_the_command_that_installs_them(monkeypatch, tmp_path):
    monkeypatch.setattr(tools.shutil, "which", lambda name, path: None if name in ("podman", "debootstrap") else name)
    assert tools.missing(None) == ["debootstrap", "podman"]
    assert tools.missing("python:3.12-slim") == ["podman"]
    command = "apt-get install --no-install-recommends podman containernetworking-plugins"
    assert tools.how_to_install(["podman"]) == command
