"""``sticky smoke``: whether an endpoint does what it must, and, on request, whether it runs what was deployed.

A deployment that SageMaker rolled back ends in service as well, with the configuration it had before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import boto3

from ..client import StickyClient
from .checks import CheckFailed, CheckResult, control_plane_check, show
from .command import FAILED, PASSED, Commands, add_command, make_client
from .contract import run_checks
from .terminal import Terminal


def add(commands: Commands) -> None:
    """Add it to the command."""
    parser = add_command(
        commands, "smoke", _run, "check that an endpoint opens, remembers, streams, recovers and closes sessions"
    )
    parser.add_argument(
        "--endpoint-config-name", default="", metavar="NAME", help="check too that this is what the endpoint runs"
    )


def smoke(client: StickyClient, terminal: Terminal, *, sagemaker: Any = None, endpoint_config_name: str = "") -> bool:
    """Whether an endpoint does what it must.

    Args:
        client: Of the endpoint.
        terminal: Where to show it.
        sagemaker: A boto3 client of the service ``sagemaker``, to ask whether ``endpoint_config_name`` is live.
        endpoint_config_name: What was deployed; empty asks the endpoint alone.
    """
    return show(_checks(client, sagemaker, endpoint_config_name), terminal, endpoint_name=client.endpoint_name)


def endpoint_in_service(sagemaker: Any, endpoint_name: str) -> str:
    """The endpoint takes requests.

    Args:
        sagemaker: A boto3 client of the service ``sagemaker``.
        endpoint_name: Name of the endpoint.

    Raises:
        CheckFailed: It does not; the message has SageMaker's reason.
    """
    endpoint = sagemaker.describe_endpoint(EndpointName=endpoint_name)
    status = endpoint["EndpointStatus"]
    if status != "InService":
        raise CheckFailed(f"the endpoint is {status}: {endpoint.get('FailureReason', 'SageMaker gives no reason')}")
    counts = [each.get("CurrentInstanceCount", 0) for each in endpoint.get("ProductionVariants", [])]
    return f"InService, {sum(counts)} instances" if any(counts) else "InService"


def config_is_live(sagemaker: Any, endpoint_name: str, endpoint_config_name: str) -> str:
    """The endpoint runs the configuration that was deployed.

    Raises:
        CheckFailed: It runs another one.
    """
    live: str = sagemaker.describe_endpoint(EndpointName=endpoint_name)["EndpointConfigName"]
    if live != endpoint_config_name:
        raise CheckFailed(f"the endpoint runs {live}, not {endpoint_config_name}: SageMaker may have rolled back")
    return live


def deployed_checks(sagemaker: Any, endpoint_name: str, endpoint_config_name: str) -> Iterator[CheckResult]:
    """Run both; a call that fails is a failed check."""
    checks: tuple[Callable[[], str], ...] = (
        lambda: endpoint_in_service(sagemaker, endpoint_name),
        lambda: config_is_live(sagemaker, endpoint_name, endpoint_config_name),
    )
    for name, check in zip(("endpoint_in_service", "config_is_live"), checks, strict=True):
        yield control_plane_check(name, check)


def _checks(client: StickyClient, sagemaker: Any, endpoint_config_name: str) -> Iterator[CheckResult]:
    if endpoint_config_name:
        yield from deployed_checks(sagemaker, client.endpoint_name, endpoint_config_name)
    yield from run_checks(client)


def _run(options: argparse.Namespace, terminal: Terminal) -> int:
    with make_client(options) as client:
        if not options.endpoint_config_name:
            return PASSED if smoke(client, terminal) else FAILED
        sagemaker = boto3.session.Session(region_name=options.region).client("sagemaker")
        passed = smoke(client, terminal, sagemaker=sagemaker, endpoint_config_name=options.endpoint_config_name)
        return PASSED if passed else FAILED
