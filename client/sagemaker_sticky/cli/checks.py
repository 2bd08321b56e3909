"""Checks, as ``smoke`` and ``doctor`` make them: what came of one, and a row each, or one JSON object for all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .terminal import Terminal


class CheckFailed(Exception):
    """What was checked is not as it must be; the message says what was seen."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came of one check."""

    name: str
    passed: bool
    detail: str
    """What was seen, or what was wrong."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For a JSON report."""
        return asdict(self)


def control_plane_check(name: str, check: Callable[[], str]) -> CheckResult:
    """Run one check that asks AWS; whatever is wrong is in the result."""
    started = time.monotonic()
    try:
        passed, detail = True, check()
    except CheckFailed as error:
        passed, detail = False, str(error)
    except (BotoCoreError, ClientError) as error:
        passed, detail = False, f"{type(error).__name__}: {error}"
    return CheckResult(name, passed, detail, time.monotonic() - started)


def show(
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
