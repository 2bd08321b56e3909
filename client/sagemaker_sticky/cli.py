"""The command ``sticky``.

``sticky smoke --endpoint-name NAME [--region REGION] [--json]`` checks that an endpoint opens, remembers, streams and
closes sessions. Exit status: 0 all checks passed; 1 a check failed; 2 nothing was checked (wrong arguments, no region).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

from ._checks import CheckResult, run_checks
from ._client import StickyClient
from ._errors import StickyError

PASSED, FAILED, NOT_RUN = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is for the shell."""
    options = _parser().parse_args(arguments)
    try:
        client = StickyClient(options.endpoint_name, region_name=options.region)
    except StickyError as error:
        print(f"sticky: {error}", file=sys.stderr)
        return NOT_RUN
    return smoke(client, as_json=options.json)


def smoke(client: StickyClient, *, as_json: bool) -> int:
    """Run the checks, a row each as it ends, or one JSON object when all have."""
    show = (lambda result: None) if as_json else _row_printer()
    results = []
    for result in run_checks(client):
        results.append(result)
        show(result)
    passed = all(result.passed for result in results)
    if as_json:
        checks = [result.to_dict() for result in results]
        print(json.dumps({"endpoint_name": client.endpoint_name, "passed": passed, "checks": checks}, indent=2))
    return PASSED if passed else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sticky", description="Sticky sessions on a SageMaker endpoint.")
    commands = parser.add_subparsers(dest="command", required=True)
    smoke_parser = commands.add_parser(
        "smoke",
        help="check that an endpoint opens, remembers, streams and closes sessions",
        epilog="Exit status: 0 all checks passed, 1 a check failed, 2 nothing was checked.",
    )
    smoke_parser.add_argument("--endpoint-name", required=True, help="name of the endpoint")
    smoke_parser.add_argument("--region", help="AWS region (default: boto3's)")
    smoke_parser.add_argument("--json", action="store_true", help="print one JSON object instead of rows")
    return parser


def _row_printer() -> Callable[[CheckResult], None]:
    """Coloured rows where there is a terminal and rich; plain ones elsewhere."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            return _print_row
        console = Console()

        def print_coloured(result: CheckResult) -> None:
            mark, colour = ("pass", "green") if result.passed else ("FAIL", "bold red")
            console.print(Text.assemble((mark, colour), _columns(result)))

        return print_coloured
    return _print_row


def _print_row(result: CheckResult) -> None:
    print(("pass" if result.passed else "FAIL") + _columns(result), flush=True)


def _columns(result: CheckResult) -> str:
    return f"  {result.name:<18} {result.seconds:7.2f} s  {result.detail}"
