"""``sticky chat``: a conversation at the terminal, or from a file of lines."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from ..errors import InvalidRequest, StickyError
from ..session import Session
from .command import FAILED, PASSED, Commands, add_command, count, make_client
from .terminal import Terminal

HELP = (
    "/rewind [K]  forget the last turn, or all after the first K\n"
    "/usage       tokens so far\n"
    "/new         begin a new session\n"
    "/quit        end"
)


def add(commands: Commands) -> None:
    """Add it to the command."""
    what = "talk: streaming, /rewind, /usage, /new, /quit; reads lines where there is no terminal"
    parser = add_command(commands, "chat", _run, what)
    parser.add_argument("--system", metavar="TEXT", help="a system message")
    parser.add_argument("--ttl", type=float, metavar="SECONDS", help="life of a session (default: the container's)")
    parser.add_argument("--max-new-tokens", type=count, metavar="N", help="longest answer (default: the engine's)")
    parser.add_argument(
        "--temperature", type=float, metavar="X", help="0 says the same each time (default: the engine's)"
    )


class Chat:
    """Reads lines and answers them: each is a turn, or a command with a slash."""

    def __init__(
        self, open_session: Callable[[], Session], terminal: Terminal, *, parameters: Mapping[str, Any]
    ) -> None:
        """``open_session`` opens a session; ``parameters`` go with every turn."""
        self.failed = 0
        """Turns and commands that ended with an error."""
        self._open = open_session
        self._terminal = terminal
        self._parameters = parameters
        self._session: Session

    def run(self, lines: Iterable[str]) -> None:
        """Talk until the lines end or one says ``/quit``.

        Raises:
            StickyError: the first session could not be opened.
        """
        self._begin()
        try:
            for line in lines:
                if line.strip() == "/quit":
                    return
                if line.strip():
                    self._answer(line.strip())
        finally:
            self._end()

    def _begin(self) -> None:
        self._session = self._open()
        self._terminal.say(f"session {self._session.id}; /help lists the commands", "dim")
        expires_at = self._session.expires_at
        self._terminal.record(
            {
                "event": "session",
                "id": self._session.id,
                "expires_at": expires_at.isoformat() if expires_at else None,
                "served_by": self._session.served_by,
            }
        )

    def _end(self) -> None:
        try:
            self._session.close()
        except StickyError as error:
            self._report(error)

    def _answer(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        commands = {"/rewind": self._rewind, "/usage": self._usage, "/new": self._new, "/help": self._help}
        try:
            if name in commands:
                commands[name](argument.strip())
            elif line.startswith("/"):
                raise InvalidRequest(f"no command {name}; /help lists them")
            else:
                self._turn(line)
        except StickyError as error:
            self._report(error)

    def _turn(self, text: str) -> None:
        session, begun, first = self._session, time.monotonic(), None
        reopened = session.reopened
        with session.stream(text, **self._parameters) as stream:
            try:
                for piece in stream:
                    first = first or time.monotonic() - begun
                    self._terminal.write(piece)
            except KeyboardInterrupt:
                self._terminal.say("\nstopped: this turn does not count", "yellow")
                return
            finally:
                self._terminal.say()
        usage, seconds = stream.usage, time.monotonic() - begun
        assert usage is not None, "a stream read to its end has its usage"
        cached = 100 * usage.cached_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
        first = seconds if first is None else first
        again = "  reopened" if session.reopened > reopened else ""
        self._terminal.say(
            f"{session.served_by}  {cached:.0f}% cached  first token {first:.2f} s  "
            f"{usage.completion_tokens} tokens in {seconds:.2f} s{again}",
            "dim",
        )
        self._terminal.record(
            {
                "event": "turn",
                "turn": session.turn,
                "text": stream.text,
                "finish_reason": stream.finish_reason,
                "served_by": session.served_by,
                "usage": asdict(usage),
                "cached_percent": round(cached, 1),
                "first_token_seconds": round(first, 4),
                "seconds": round(seconds, 4),
                "reopened": session.reopened,
            }
        )

    def _rewind(self, argument: str) -> None:
        if argument and not argument.isdecimal():
            raise InvalidRequest(f"/rewind takes a number of turns to keep, got {argument!r}")
        self._session.rewind(int(argument) if argument else self._session.turn - 1)
        turns = self._session.turn
        self._terminal.say(f"{turns} turn{'s' * (turns != 1)} kept", "dim")
        self._terminal.record({"event": "rewind", "turn": self._session.turn})

    def _usage(self, _argument: str) -> None:
        usage = self._session.usage
        self._terminal.say(
            f"{self._session.turn} turns  prompt {usage.prompt_tokens} tokens, {usage.cached_tokens} of them cached  "
            f"completion {usage.completion_tokens} tokens",
            "dim",
        )
        self._terminal.record({"event": "usage", "turn": self._session.turn, "usage": asdict(usage)})

    def _new(self, _argument: str) -> None:
        self._end()
        self._begin()

    def _help(self, _argument: str) -> None:
        self._terminal.say(HELP)

    def _report(self, error: StickyError) -> None:
        self.failed += 1
        self._terminal.say(f"{type(error).__name__}: {error}", "bold red")
        self._terminal.record({"event": "error", "code": error.code, "message": str(error)})


def _run(options: argparse.Namespace, terminal: Terminal) -> int:
    given = {"max_new_tokens": options.max_new_tokens, "temperature": options.temperature}
    parameters = {name: value for name, value in given.items() if value is not None}
    typed = sys.stdin.isatty()
    with make_client(options) as client:
        session = partial(client.session, system=options.system, ttl=options.ttl)
        chat = Chat(lambda: session().open(), terminal, parameters=parameters)
        with suppress(KeyboardInterrupt):
            chat.run(_typed() if typed else sys.stdin)
    return FAILED if chat.failed and not typed else PASSED


def _typed() -> Iterator[str]:
    """What a person types, until the end of input."""
    with suppress(ImportError):
        import readline  # noqa: F401 - arrow keys and history for input()
    with suppress(EOFError):
        while True:
            yield input("> ")
