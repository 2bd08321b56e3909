"""``sticky bench``: sessions at once, turn after turn, and what a turn takes; through the public client alone."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .._core.answers import Usage
from ..client import StickyClient
from .command import PASSED, Commands, add_command, count, make_client
from .terminal import Terminal

CONTEXT = "You answer in one short sentence. " * 32
"""What every session starts with: about 250 tokens, so that a cache has something to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much is asked."""

    sessions: int
    turns: int
    concurrency: int
    max_new_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One turn."""

    number: int
    first_token_seconds: float
    seconds: float
    usage: Usage


def add(commands: Commands) -> None:
    """Add it to the command."""
    parser = add_command(commands, "bench", _run, "measure what a turn takes with sessions at once")
    parser.add_argument("--sessions", type=count, default=8, metavar="N", help="in all (default: %(default)s)")
    parser.add_argument("--turns", type=count, default=4, metavar="N", help="of each session (default: %(default)s)")
    parser.add_argument("--concurrency", type=count, default=4, metavar="N", help="at once (default: %(default)s)")
    parser.add_argument("--max-new-tokens", type=count, default=64, metavar="N", help="a turn (default: %(default)s)")


def bench(client: StickyClient, load: Load, terminal: Terminal) -> None:
    """Run it and show the figures.

    Raises:
        StickyError: a session failed.
    """
    begun = time.perf_counter()
    with ThreadPoolExecutor(load.concurrency) as threads:
        turns = [turn for each in threads.map(lambda _: _converse(client, load), range(load.sessions)) for turn in each]
    rows = _figures(turns, seconds=time.perf_counter() - begun)
    for row in rows:
        terminal.say(f"{row['figure']:<36} {row['value']:>10.4g} {row['unit']}")
    terminal.record({"endpoint_name": client.endpoint_name, "figures": rows}, indent=2)


def _run(options: argparse.Namespace, terminal: Terminal) -> int:
    load = Load(
        sessions=options.sessions,
        turns=options.turns,
        concurrency=options.concurrency,
        max_new_tokens=options.max_new_tokens,
    )
    with make_client(options) as client:
        bench(client, load, terminal)
    return PASSED


def _converse(client: StickyClient, load: Load) -> list[Measured]:
    with client.session(system=CONTEXT) as session:
        return [_measured(session, number, load) for number in range(1, load.turns + 1)]


def _measured(session: Any, number: int, load: Load) -> Measured:
    begun, first = time.perf_counter(), None
    with session.stream(f"Tell me something new, number {number}.", max_new_tokens=load.max_new_tokens) as stream:
        for _ in stream:
            first = first or time.perf_counter() - begun
    seconds = time.perf_counter() - begun
    return Measured(number=number, first_token_seconds=first or seconds, seconds=seconds, usage=stream.usage or Usage())


def _figures(turns: Sequence[Measured], *, seconds: float) -> list[dict[str, Any]]:
    firsts = [turn.first_token_seconds for turn in turns]
    total = sum((turn.usage for turn in turns), Usage())
    later = sum((turn.usage for turn in turns if turn.number > 1), Usage())
    return [
        _figure("turns", len(turns), "turns"),
        _figure("turns per second", len(turns) / seconds, "1/s"),
        _figure("output tokens per second", total.completion_tokens / seconds, "1/s"),
        _figure("first token, median", statistics.median(firsts), "s"),
        _figure("first token, 95th percentile", _percentile(firsts, 95), "s"),
        _figure("whole turn, median", statistics.median(turn.seconds for turn in turns), "s"),
        _figure("whole turn, 95th percentile", _percentile([turn.seconds for turn in turns], 95), "s"),
        _figure("cached after the first turn", 100 * later.cached_tokens / max(1, later.prompt_tokens), "%"),
    ]


def _figure(figure: str, value: float, unit: str) -> dict[str, Any]:
    return {"figure": figure, "value": round(value, 6), "unit": unit}


def _percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
