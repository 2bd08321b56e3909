"""``sticky smoke`` and ``sticky doctor``: checks, a row each as it ends, or one JSON object when all have."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._checks import CheckResult, run_checks
from ._core.error_mapping import LOWER_ERRORS
from ._deployed import deployed_checks
from ._doctor import endpoint_health, preflight, read_plan
from ._terminal import Terminal
from .client import StickyClient

if TYPE_CHECKING:
    import boto3


def smoke(client: StickyClient, terminal: Terminal, *, sagemaker: Any = None, endpoint_config_name: str = "") -> bool:
    """Whether an endpoint does what it must.

    Args:
        client: Of the endpoint.
        terminal: Where to show it.
        sagemaker: A boto3 client of the service ``sagemaker``, to ask whether ``endpoint_config_name`` is live.
        endpoint_config_name: What was deployed; empty asks the endpoint alone.
    """
    return _shown(_smoke(client, sagemaker, endpoint_config_name), terminal, endpoint_name=client.endpoint_name)


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

    return _shown(checks(), terminal, endpoint_name=name, log=log)


def _smoke(client: StickyClient, sagemaker: Any, endpoint_config_name: str) -> Iterator[CheckResult]:
    if endpoint_config_name:
        yield from deployed_checks(sagemaker, client.endpoint_name, endpoint_config_name)
    yield from run_checks(client)


def _shown(
    results: Iterable[CheckResult], terminal: Terminal, *, endpoint_name: str, log: list[str] | None = None
) -> bool:
    """Whether every check passed, once each was shown; ``log`` is filled by then."""
    checks = []
    for result in results:
        checks.append(result)
        mark = ("pass", "green") if result.passed else ("FAIL", "bold red")
        terminal.row([mark, (f"  {result.name:<18} {result.seconds:7.2f} s  {result.detail}", "")])
    passed = all(check.passed for check in checks)
    for line in log or ():
        terminal.say(f"      {line}", "dim")
    record = {"endpoint_name": endpoint_name, "passed": passed, "checks": [check.to_dict() for check in checks]}
    terminal.record(record if log is None else {**record, "log": log}, indent=2)
    if not passed:
        failed = ", ".join(check.name for check in checks if not check.passed)
        sys.stderr.write(f"sticky: {endpoint_name}: failed: {failed}\n")
    return passed
