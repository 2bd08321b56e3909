"""``sticky doctor``: what would stop a deployment, before it is begun, and why an endpoint failed, after it did.

It reads what ``cdk deploy`` would read and asks AWS; it changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from .._core.error_mapping import LOWER_ERRORS
from .checks import CheckFailed, CheckResult, control_plane_check, show
from .command import FAILED, PASSED, Commands, add_command
from .preflight import preflight, read_plan
from .terminal import Terminal

LOG_GROUP = "/aws/sagemaker/Endpoints/{}"
LOG_LINES = 20


def add(commands: Commands) -> None:
    """Add it to the command."""
    what = "find what would stop a deployment, and why an endpoint failed; changes nothing"
    parser = add_command(commands, "doctor", _run, what, endpoint_required=False)
    parser.add_argument("--directory", default=".", metavar="PATH", help="where cdk.json is (default: here)")
    parser.add_argument("--stage", metavar="NAME", help="the stage whose settings go over cdk.json")


def doctor(
    session: boto3.session.Session, terminal: Terminal, *, directory: Path, stage: str | None, endpoint_name: str | None
) -> bool:
    """Whether nothing stands in the way of a deployment, and the endpoint is well if it is there.

    Args:
        session: Whose account and region to ask.
        terminal: Where to show it.
        directory: Where cdk.json is; of an ``endpoint_name`` elsewhere, the endpoint alone is looked at.
        stage: Whose file goes over it.
        endpoint_name: None takes the plan's.

    Raises:
        CheckFailed: there is no plan to read.
    """
    plan = read_plan(directory, stage=stage) if endpoint_name is None or (directory / "cdk.json").exists() else None
    name = endpoint_name or (plan.endpoint_name if plan else None)
    assert name is not None, "a plan that was read has a name"
    log: list[str] = []

    def checks() -> Iterator[CheckResult]:
        if plan is not None:
            yield from preflight(session, plan)
        try:
            result, lines = endpoint_health(session, name)
        except LOWER_ERRORS as error:  # its log could not be read either
            result, lines = CheckResult("endpoint", False, f"{type(error).__name__}: {error}", 0.0), []
        log.extend(lines)
        yield result

    return show(checks(), terminal, endpoint_name=name, log=log)


def endpoint_health(session: boto3.session.Session, endpoint_name: str) -> tuple[CheckResult, list[str]]:
    """Whether an endpoint is well, and the last lines of its log where it is not."""
    result = control_plane_check("endpoint", lambda: _status(session, endpoint_name))
    return result, [] if result.passed else log_tail(session, endpoint_name)


def log_tail(session: boto3.session.Session, endpoint_name: str, *, lines: int = LOG_LINES) -> list[str]:
    """The last lines of the instance that wrote last; none where there is no log."""
    logs, group = session.client("logs"), LOG_GROUP.format(endpoint_name)
    try:
        streams = logs.describe_log_streams(logGroupName=group, orderBy="LastEventTime", descending=True, limit=1)
        if not streams["logStreams"]:
            return []
        stream = streams["logStreams"][0]["logStreamName"]
        events = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=lines, startFromHead=False)
    except logs.exceptions.ResourceNotFoundException:
        return []
    return [each["message"].rstrip("\n") for each in events["events"]]


def _status(session: boto3.session.Session, endpoint_name: str) -> str:
    sagemaker = session.client("sagemaker")
    try:
        endpoint: Mapping[str, Any] = sagemaker.describe_endpoint(EndpointName=endpoint_name)
    except ClientError as error:
        if "Could not find" in error.response["Error"].get("Message", ""):
            return f"{endpoint_name} is not there yet"
        raise
    status = endpoint["EndpointStatus"]
    reason = endpoint.get("FailureReason")
    if status == "Failed" or reason:
        raise CheckFailed(f"{endpoint_name} is {status}: {reason or 'SageMaker gives no reason'}")
    return f"{endpoint_name} is {status}"


def _run(options: argparse.Namespace, terminal: Terminal) -> int:
    session = boto3.session.Session(region_name=options.region)
    well = doctor(
        session,
        terminal,
        directory=Path(options.directory),
        stage=options.stage,
        endpoint_name=options.endpoint_name,
    )
    return PASSED if well else FAILED
