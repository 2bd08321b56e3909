"""The account: what a deployment made there, and what a destroyed one left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3

TOOLKIT = "CDKToolkit"
BOOTSTRAP = "cdk-hnb659fds-"
"""Stack, and prefix of the roles, that ``cdk bootstrap`` makes and that stay."""


def inventory(session: boto3.Session) -> dict[str, list[str]]:
    """Names of everything that a stack of ours makes, by kind, without what bootstrapping made."""

    def listed(service: str, operation: str, key: str, name: str, **arguments: Any) -> list[str]:
        pages = session.client(service).get_paginator(operation).paginate(**arguments)
        return [str(each[name]) for page in pages for each in page.get(key, [])]

    scaling = {"ServiceNamespace": "sagemaker"}
    kinds: dict[str, Callable[[], list[str]]] = {
        "models": lambda: listed("sagemaker", "list_models", "Models", "ModelName"),
        "configs": lambda: listed("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigName"),
        "endpoints": lambda: listed("sagemaker", "list_endpoints", "Endpoints", "EndpointName"),
        "targets": lambda: listed(
            "application-autoscaling", "describe_scalable_targets", "ScalableTargets", "ResourceId", **scaling
        ),
        "scaling policies": lambda: listed(
            "application-autoscaling", "describe_scaling_policies", "ScalingPolicies", "PolicyName", **scaling
        ),
        "alarms": lambda: listed("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        "dashboards": lambda: listed("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
        "log groups": lambda: listed("logs", "describe_log_groups", "logGroups", "logGroupName"),
        "roles": lambda: listed("iam", "list_roles", "Roles", "RoleName"),
        "policies": lambda: listed("iam", "list_policies", "Policies", "PolicyName", Scope="Local"),
        "stacks": lambda: listed("cloudformation", "describe_stacks", "Stacks", "StackName"),
    }
    return {
        kind: [name for name in names() if not name.startswith((TOOLKIT, BOOTSTRAP))] for kind, names in kinds.items()
    }


def leftovers(found: dict[str, list[str]]) -> list[str]:
    """A line for each kind of which something is left."""
    return [f"{kind}: {', '.join(names)}" for kind, names in found.items() if names]
