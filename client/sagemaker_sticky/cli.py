"""The command ``sticky``: ``smoke``, ``chat`` or ``bench`` an endpoint, ``doctor`` a deployment. ``--json`` everywhere.

Exit status: 0 all went well; 1 a check, a turn or the endpoint failed; 2 nothing was tried (arguments, region).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import boto3

from ._bench import Load, bench
from ._chat import Chat
from ._checks import CheckFailed
from ._core.error_mapping import mapped
from ._reports import doctor, smoke
from ._terminal import Terminal
from .client import StickyClient
from .errors import NotConfigured, StickyError

PASSED, FAILED, NOT_RUN = 0, 1, 2
EXIT_STATUS = "Exit status: 0 all went well, 1 a check, a turn or the endpoint failed, 2 nothing was tried."

Command = Callable[[argparse.Namespace, Terminal], int]


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


def _smoke(options: argparse.Namespace, terminal: Terminal) -> int:
    with _client(options) as client:
        if not options.endpoint_config_name:
            return PASSED if smoke(client, terminal) else FAILED
        sagemaker = boto3.session.Session(region_name=options.region).client("sagemaker")
        passed = smoke(client, terminal, sagemaker=sagemaker, endpoint_config_name=options.endpoint_config_name)
        return PASSED if passed else FAILED


def _chat(options: argparse.Namespace, terminal: Terminal) -> int:
    given = {"max_new_tokens": options.max_new_tokens, "temperature": options.temperature}
    parameters = {name: value for name, value in given.items() if value is not None}
    typed = sys.stdin.isatty()
    with _client(options) as client:
        session = partial(client.session, system=options.system, ttl=options.ttl)
        chat = Chat(lambda: session().open(), terminal, parameters=parameters)
        with suppress(KeyboardInterrupt):
            chat.run(_typed() if typed else sys.stdin)
    return FAILED if chat.failed and not typed else PASSED


def _bench(options: argparse.Namespace, terminal: Terminal) -> int:
    load = Load(
        sessions=options.sessions,
        turns=options.turns,
        concurrency=options.concurrency,
        max_new_tokens=options.max_new_tokens,
    )
    with _client(options) as client:
        bench(client, load, terminal)
    return PASSED


def _doctor(options: argparse.Namespace, terminal: Terminal) -> int:
    session = boto3.session.Session(region_name=options.region)
    well = doctor(
        session,
        terminal,
        directory=Path(options.directory),
        stage=options.stage,
        endpoint_name=options.endpoint_name,
    )
    return PASSED if well else FAILED


def _client(options: argparse.Namespace) -> StickyClient:
    return StickyClient(options.endpoint_name, region_name=options.region)


def _typed() -> Iterator[str]:
    """What a person types, until the end of input."""
    with suppress(ImportError):
        import readline  # noqa: F401 - arrow keys and history for input()
    with suppress(EOFError):
        while True:
            yield input("> ")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sticky", description="Sticky sessions on a SageMaker endpoint.", epilog=EXIT_STATUS
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add = partial(_add_command, commands)
    check = add("smoke", _smoke, "check that an endpoint opens, remembers, streams, recovers and closes sessions")
    check.add_argument(
        "--endpoint-config-name", default="", metavar="NAME", help="check too that this is what the endpoint runs"
    )
    chat = add("chat", _chat, "talk: streaming, /rewind, /usage, /new, /quit; reads lines where there is no terminal")
    chat.add_argument("--system", metavar="TEXT", help="a system message")
    chat.add_argument("--ttl", type=float, metavar="SECONDS", help="life of a session (default: the container's)")
    chat.add_argument("--max-new-tokens", type=_count, metavar="N", help="longest answer (default: the engine's)")
    chat.add_argument(
        "--temperature", type=float, metavar="X", help="0 says the same each time (default: the engine's)"
    )
    load = add("bench", _bench, "measure what a turn takes with sessions at once")
    load.add_argument("--sessions", type=_count, default=8, metavar="N", help="in all (default: %(default)s)")
    load.add_argument("--turns", type=_count, default=4, metavar="N", help="of each session (default: %(default)s)")
    load.add_argument("--concurrency", type=_count, default=4, metavar="N", help="at once (default: %(default)s)")
    load.add_argument("--max-new-tokens", type=_count, default=64, metavar="N", help="a turn (default: %(default)s)")
    ask = "find what would stop a deployment, and why an endpoint failed; changes nothing"
    diagnosis = add("doctor", _doctor, ask, endpoint_required=False)
    diagnosis.add_argument("--directory", default=".", metavar="PATH", help="where cdk.json is (default: here)")
    diagnosis.add_argument("--stage", metavar="NAME", help="the stage whose settings go over cdk.json")
    return parser


def _add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Command,
    what: str,
    *,
    endpoint_required: bool = True,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=what, description=what.capitalize() + ".", epilog=EXIT_STATUS)
    command.set_defaults(run=run)
    command.add_argument("--endpoint-name", required=endpoint_required, metavar="NAME", help="name of the endpoint")
    command.add_argument("--region", help="AWS region (default: boto3's)")
    command.add_argument("--json", action="store_true", help="print JSON instead of words: an object, or one a line")
    return command


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"should be at least 1, got {value}")
    return value
