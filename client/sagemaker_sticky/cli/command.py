"""What every subcommand has in common: arguments, the endpoint's client, and what the exit status says."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from ..client import StickyClient
from .terminal import Terminal

PASSED, FAILED, NOT_RUN = 0, 1, 2
EXIT_STATUS = "Exit status: 0 all went well, 1 a check, a turn or the endpoint failed, 2 nothing was tried."

Command = Callable[[argparse.Namespace, Terminal], int]
"""Runs a subcommand; gives its exit status."""
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where a subcommand is added."""


def add_command(
    commands: Commands,
    name: str,
    run: Command,
    what: str,
    *,
    endpoint_required: bool = True,
) -> argparse.ArgumentParser:
    """Add a subcommand, with the arguments that all have."""
    command = commands.add_parser(name, help=what, description=what.capitalize() + ".", epilog=EXIT_STATUS)
    command.set_defaults(run=run)
    command.add_argument("--endpoint-name", required=endpoint_required, metavar="NAME", help="name of the endpoint")
    command.add_argument("--region", help="AWS region (default: boto3's)")
    command.add_argument("--json", action="store_true", help="print JSON instead of words: an object, or one a line")
    return command


def make_client(options: argparse.Namespace) -> StickyClient:
    """The client of the endpoint that the arguments name."""
    return StickyClient(options.endpoint_name, region_name=options.region)


def count(text: str) -> int:
    """The number that an argument is: a whole one from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"should be at least 1, got {value}")
    return value
