"""The command ``sticky``: ``smoke``, ``chat`` or ``bench`` an endpoint, ``doctor`` a deployment. ``--json`` everywhere.

Exit status: 0 all went well; 1 a check, a turn or the endpoint failed; 2 nothing was tried (arguments, region).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._core.error_mapping import mapped
from ..errors import NotConfigured, StickyError
from . import bench, chat, doctor, smoke
from .checks import CheckFailed
from .command import EXIT_STATUS, FAILED, NOT_RUN, Command
from .terminal import Terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is for the shell."""
    options = _parser().parse_args(arguments)
    run: Command = options.run
    try:
        with mapped():
            return run(options, Terminal(as_json=options.json))
    except (StickyError, CheckFailed) as error:
        print(f"sticky: {error}", file=sys.stderr)
        return NOT_RUN if isinstance(error, (NotConfigured, CheckFailed)) else FAILED
    except KeyboardInterrupt:
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sticky", description="Sticky sessions on a SageMaker endpoint.", epilog=EXIT_STATUS
    )
    commands = parser.add_subparsers(dest="command", required=True)
    smoke.add(commands)
    chat.add(commands)
    bench.add(commands)
    doctor.add(commands)
    return parser
