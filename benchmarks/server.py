"""Figures of the container, each beside a peer in the same run.

``python -m benchmarks.server [echo|sglang]``: one part, or both.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import uvloop

from benchmarks.load import Connection, at_once, close_session, open_session, turn
from benchmarks.processes import Server, container, launch_server, peer_sessions
from benchmarks.report import Figure, report
from container.arguments import command_line
from container.config import ContainerConfig
from emulator import EmulatorConfig
from emulator.fleet import container_environment
from sglang_cpu.make_tiny import make_tiny

ROUNDS = 5
AT_ONCE = 8
TURNS_A_ROUND = 60
OPENS_A_ROUND = 60
PING_ROUNDS = 40
CHAT_ROUNDS = 16
CHATS_A_ROUND = 6


def main() -> None:
    """Measure and report."""
    # As an exit, so that the servers under measurement end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parts = sys.argv[1:] or ["echo", "sglang"]
    figures: list[Figure] = []
    if "echo" in parts:
        figures += [*against_peer_sessions(), ping_under_load(), growth_of_cpu(), growth_of_memory()]
    if "sglang" in parts:
        figures += [*against_launch_server(), reuse()]
    report("server", figures)


# --- echo engine ------------------------------------------------------------------------------------------------------


def against_peer_sessions() -> Iterator[Figure]:
    """Requests a second, ours over the peer's: rounds take turns, so that the machine is the same for both."""
    with container(SES_TTL_MIN="60") as ours, peer_sessions() as peer:
        for name, work, count, bar in (
            ("in-session turn, requests/s, over FastAPI with AWS's session library", _turns, TURNS_A_ROUND, 1.5),
            ("open + close, requests/s, over the same", _open_close, 2 * OPENS_A_ROUND, 2.0),
        ):
            ratios = []
            for _ in range(ROUNDS):
                rates = [AT_ONCE * count / _seconds(at_once(each.url, work, AT_ONCE)) for each in (ours, peer)]
                ratios.append(rates[0] / rates[1])
            yield Figure(figure=name, value=statistics.median(ratios), unit="x", bar=bar, better="higher")


async def _turns(connection: Connection) -> None:
    session = await open_session(connection)
    for _ in range(TURNS_A_ROUND):
        await turn(connection, session, "What is my dog called?")
    await close_session(connection, session)


async def _open_close(connection: Connection) -> None:
    for _ in range(OPENS_A_ROUND):
        await close_session(connection, await open_session(connection))


def ping_under_load() -> Figure:
    """The slowest ``/ping`` in a hundred, each on a connection of its own, while 8 callers take turns without pause."""

    async def ping(url: str, times: list[float]) -> None:
        while True:
            asked = time.perf_counter()
            connection = await Connection.to(url)
            await connection.request("GET", "/ping")
            connection.close()
            times.append(1000 * (time.perf_counter() - asked))
            await asyncio.sleep(0.005)

    async def measure(url: str) -> list[float]:
        times: list[float] = []
        await at_once(url, _turns, AT_ONCE)
        pings = asyncio.create_task(ping(url, times))
        for _ in range(PING_ROUNDS):
            await at_once(url, _turns, AT_ONCE)
        pings.cancel()
        return times

    with container(SES_TTL_MIN="60") as server:
        value = statistics.quantiles(uvloop.run(measure(server.url)), n=100)[-1]
    return Figure(figure="/ping under load, 99th percentile", value=value, unit="ms", bar=5, better="lower")


def growth_of_cpu() -> Figure:
    """Processor time of a turn late in a session, over one early in it."""
    early, late, width, sessions = 10, 1000, 40, 8

    async def measure(server: Server) -> float:
        connection = await Connection.to(server.url)
        ids = [await open_session(connection) for _ in range(sessions)]

        async def advance(turns: int) -> float:
            before = server.cpu_seconds()
            for session in ids:
                for _ in range(turns):
                    await turn(connection, session, "And then?")
            return server.cpu_seconds() - before

        await advance(early - width // 4)
        first = await advance(width)
        await advance(late - early - width)
        return await advance(width) / first

    values = []
    for _ in range(ROUNDS):
        with container(SM_SGLANG_CONTEXT_LENGTH="10000000", SES_TTL_MIN="60") as server:
            values.append(uvloop.run(measure(server)))
    value = statistics.median(values)
    return Figure(figure="server CPU of turn 1,000 over turn 10", value=value, unit="x", bar=1.2, better="lower")


def growth_of_memory() -> Figure:
    """Resident memory that 10,000 sessions of 1,000 tokens take."""

    async def measure(server: Server) -> float:
        connection = await Connection.to(server.url)
        await turn(connection, await open_session(connection), "warm-up " * 500)
        before = server.resident_bytes()
        for _ in range(10_000):
            await _session_of_1000_tokens(connection)
        return (server.resident_bytes() - before) / 1e6

    with container(MAX_SESSIONS="20000", SES_TTL_MIN="60") as server:
        value = uvloop.run(measure(server))
    return Figure(
        figure="growth of resident memory, 10,000 sessions of 1,000 tokens",
        value=value,
        unit="MB",
        bar=120,
        better="lower",
    )


async def _session_of_1000_tokens(connection: Connection) -> None:
    answer = await turn(connection, await open_session(connection), "word " * 780, max_new_tokens=8)
    assert 990 <= answer["session"]["context_tokens"] <= 1010, answer["session"]


# --- SGLang -----------------------------------------------------------------------------------------------------------


def against_launch_server() -> Iterator[Figure]:
    """Stateless chat at 8 at once on a tiny model, ours over the peer's: rounds take turns, the idle one sleeps."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model = Path(folder) / "tiny"
        environment = _cpu_environment()
        make_tiny(Path(environment["SM_SGLANG_MODEL_PATH"]), model)
        environment["SM_SGLANG_MODEL_PATH"] = str(model)
        flags = command_line(ContainerConfig.from_env(environment).engine_arguments)  # the same for both
        ours = stack.enter_context(container(**environment))
        peer = stack.enter_context(launch_server(flags, environment))
        first_token, rate = [], []
        for pair in range(CHAT_ROUNDS + 1):
            # Who goes first changes, so that a machine that gets slower or faster favours nobody.
            order = (ours, peer) if pair % 2 else (peer, ours)
            measured = {server.url: asyncio.run(_chats(server.url, CHATS_A_ROUND)) for server in order}
            if pair:  # the first is the warm-up
                (our_seconds, our_times), (peer_seconds, peer_times) = measured[ours.url], measured[peer.url]
                first_token.append(statistics.median(our_times) / statistics.median(peer_times))
                rate.append(peer_seconds / our_seconds)
    yield Figure(
        figure="stateless chat, time to first token, over sglang.launch_server",
        value=statistics.median(first_token), unit="x", bar=1.05, better="lower",
    )  # fmt: skip
    yield Figure(
        figure="stateless chat, requests/s at 8 at once, over the same",
        value=statistics.median(rate), unit="x", bar=1.0, better="higher",
    )  # fmt: skip


async def _chats(url: str, each: int) -> tuple[float, list[float]]:
    """Seconds for 8 callers of ``each`` chats, and every chat's time to first token in seconds."""
    times: list[float] = []

    async def caller(client: aiohttp.ClientSession, number: int) -> None:
        for chat in range(each):
            content = f"caller {number} asks for the {chat}th time: " + "what do dogs like to eat? " * 8
            body = {"model": "default", "messages": [{"role": "user", "content": content}], "stream": True}
            body |= {"max_tokens": 24, "temperature": 0, "ignore_eos": True}
            asked = time.perf_counter()
            async with client.post(f"{url}/v1/chat/completions", json=body) as response:
                assert response.status == 200, await response.text()
                first = None
                async for line in response.content:
                    # The first chunk has the role only.
                    if first is None and b'"content":"' in line and b'"content":""' not in line:
                        first = time.perf_counter() - asked
                times.append(first or 0.0)

    async with aiohttp.ClientSession() as client:
        begun = time.perf_counter()
        await asyncio.gather(*(caller(client, number) for number in range(AT_ONCE)))
        return time.perf_counter() - begun, times


def reuse() -> Figure:
    """Cached over all earlier tokens: 16 sessions of 8 turns at once on SmolLM2."""
    totals = {"earlier": 0, "cached": 0}

    async def converse(connection: Connection) -> None:
        session, earlier = await open_session(connection), 0
        for number in range(8):
            answer = await turn(connection, session, f"Question {number} of {session}?", max_new_tokens=16)
            usage = answer["generation"]["meta_info"]
            totals["earlier"] += earlier
            totals["cached"] += usage["cached_tokens"] if number else 0
            earlier = usage["prompt_tokens"] + usage["completion_tokens"]

    with container(**_cpu_environment()) as server:
        uvloop.run(at_once(server.url, converse, 16))
    value = 100 * totals["cached"] / totals["earlier"]
    return Figure(figure="tokens reused, 16 sessions x 8 turns at once", value=value, unit="%", bar=99, better="higher")


def _cpu_environment() -> dict[str, str]:
    whole = container_environment(EmulatorConfig(engine="sglang", instances=1), "i-0", 0)
    return {
        name: value
        for name, value in whole.items()
        if name.startswith(
            ("SM_SGLANG_", "STICKY_ENGINE", "SGLANG_", "OMP_", "TORCH", "TOKENIZERS", "HF_", "PYTHONPATH")
        )
    }


def _seconds(work: Awaitable[None]) -> float:
    async def timed() -> float:
        begun = time.perf_counter()
        await work
        return time.perf_counter() - begun

    return uvloop.run(timed())


if __name__ == "__main__":
    main()
