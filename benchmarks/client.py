"""``python -m benchmarks.client``: what the client costs beside boto3 alone, in one run on the echo engine.

Both sides ask the same endpoint in turns, one after the other, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import sub
from typing import Any

import boto3
from sagemaker_sticky import Session, StickyClient
from sagemaker_sticky._transport import runtime_config
from sagemaker_sticky.aio import AsyncStickyClient

from benchmarks.report import Figure, report
from emulator import Emulator, running_emulator

TURNS = 270
WARM_UP = 20
STREAMS = 25
CHUNKS = 1000
TOKENS_A_CHUNK = 4
LONG = "word" * CHUNKS * TOKENS_A_CHUNK
"""The echo engine quotes this: four thousand tokens of four bytes, four of them a chunk."""
EVENT_BYTES = len(b'data: {"generation":{"text":"wordwordwordword"}}\n\n')
"""Size of the parts, so that each brings one event, as a model's pace does."""
IMPORTS = 15
AT_ONCE = 200
TOKEN_SECONDS = 0.1
ENDPOINT = "sticky"


def main() -> None:
    """Measure, print, write."""
    with running_emulator(instances=1, engine="echo", part_bytes=(EVENT_BYTES,)) as emulator:
        runtime = make_runtime(emulator)
        client = StickyClient(ENDPOINT, runtime=runtime)
        figures = [added_per_turn(client, Raw(runtime)), *streaming(client, Raw(runtime))]
        runtime.close()
    slow = {"STICKY_ECHO_TOKEN_S": f"{TOKEN_SECONDS:g}", "MAX_SESSIONS": "1000"}
    with running_emulator(instances=2, engine="echo", environment=slow) as emulator:
        figures += at_once(emulator)
    report("client", [*figures, importing()])


def make_runtime(emulator: Emulator, **options: Any) -> Any:
    """boto3's client for the emulator, set up as the package sets its own up."""
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=emulator.url,
        region_name=emulator.config.region,
        aws_access_key_id="emulator",
        aws_secret_access_key="emulator",
        config=runtime_config(**options),
    )


@dataclass(frozen=True, slots=True)
class Raw:
    """What one writes with boto3 alone: no errors mapped, no transcript, nothing checked."""

    runtime: Any

    def open(self) -> str:
        """Open a session; gives its id."""
        body = json.dumps({"requestType": "NEW_SESSION"})
        response = self.runtime.invoke_endpoint(
            EndpointName=ENDPOINT, SessionId="NEW_SESSION", ContentType="application/json", Body=body
        )
        response["Body"].read()
        return str(response["NewSessionId"]).partition(";")[0]

    def invoke(self, session_id: str, text: str) -> str:
        """One turn."""
        body = json.dumps({"requestType": "SESSION", "inputs": text, "parameters": {"max_new_tokens": 4}})
        response = self.runtime.invoke_endpoint(
            EndpointName=ENDPOINT, SessionId=session_id, ContentType="application/json", Body=body
        )
        return str(json.loads(response["Body"].read())["generation"]["text"])

    def stream(self, session_id: str, text: str, tokens: int) -> int:
        """One streamed turn, whose bytes are not even looked at; gives how many there were."""
        parameters = {"max_new_tokens": tokens}
        body = json.dumps({"requestType": "SESSION", "inputs": text, "stream": True, "parameters": parameters})
        response = self.runtime.invoke_endpoint_with_response_stream(
            EndpointName=ENDPOINT, SessionId=session_id, ContentType="application/json", Body=body
        )
        return sum(len(event["PayloadPart"]["Bytes"]) for event in response["Body"])


def added_per_turn(client: StickyClient, raw: Raw) -> Figure:
    """How much longer a turn takes than its neighbour, at the median. Who goes first changes."""
    seconds: dict[str, list[float]] = {"ours": [], "raw": []}
    with client.session() as session:
        other = raw.open()

        def ours(text: str) -> None:
            session.invoke(text, max_new_tokens=4)

        def theirs(text: str) -> None:
            raw.invoke(other, text)

        pair = [("ours", ours), ("raw", theirs)]
        for number in range(TURNS):
            for name, turn in pair:
                seconds[name].append(timed(partial(turn, f"Hello {number}.")))
            pair.reverse()
    added = statistics.median(map(sub, seconds["ours"][WARM_UP:], seconds["raw"][WARM_UP:]))
    return Figure(figure="added time per turn, median", value=added * 1000, unit="ms", bar=0.3, better="lower")


def streaming(client: StickyClient, raw: Raw) -> list[Figure]:
    """How much longer a long stream takes to read, by the clock and in processor time; boto3's is not even parsed.

    The best of many: what is above it is what else the machine does.
    """
    ours, theirs, our_work, their_work = [], [], [], []
    for _ in range(STREAMS):
        with client.session() as session:
            seconds, work = worked(partial(read_ours, session))
            ours.append(seconds)
            our_work.append(work)
        seconds, work = worked(partial(raw.stream, raw.open(), LONG, CHUNKS * TOKENS_A_CHUNK))
        theirs.append(seconds)
        their_work.append(work)
    return [
        Figure(
            figure="a stream of 1,000 chunks beside boto3",
            value=min(ours) / min(theirs),
            unit="x",
            bar=1.15,
            better="lower",
        ),
        Figure(
            figure="processor time of that, beside boto3",
            value=min(our_work) / min(their_work),
            unit="x",
            bar=1.25,
            better="lower",
        ),
    ]


def read_ours(session: Session) -> int:
    """One long streamed turn; gives the number of its pieces."""
    return sum(1 for _ in session.stream(LONG, max_new_tokens=CHUNKS * TOKENS_A_CHUNK))


def at_once(emulator: Emulator) -> list[Figure]:
    """Streams at once on one event loop: how many are answered whole, and how evenly."""
    gaps: list[float] = []

    async def one(client: AsyncStickyClient) -> bool:
        async with client.session() as session:
            last = None
            async for _ in session.stream("word" * 50, max_new_tokens=50):
                now = time.perf_counter()
                if last is not None:
                    gaps.append(now - last)
                last = now
            return session.turn == 1

    async def every() -> int:
        runtime = make_runtime(emulator, max_connections=AT_ONCE)
        async with AsyncStickyClient(ENDPOINT, runtime=runtime, max_concurrency=AT_ONCE) as client:
            return sum(await asyncio.gather(*(one(client) for _ in range(AT_ONCE))))

    answered = asyncio.run(every())
    late = sorted(gaps)[len(gaps) * 99 // 100] - TOKEN_SECONDS
    return [
        Figure(figure="streams at once, answered whole", value=answered, unit="", bar=AT_ONCE, better="higher"),
        Figure(figure="piece late by, 99th percentile of those", value=late * 1000, unit="ms", bar=250, better="lower"),
    ]


def importing() -> Figure:
    """How much longer the import takes than boto3's own, both compiled before, as an installation is."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        import_seconds("sagemaker_sticky", environment)
        ours, theirs = [], []
        for _ in range(IMPORTS):
            ours.append(import_seconds("sagemaker_sticky", environment))
            theirs.append(import_seconds("boto3", environment))
    ratio = statistics.median(ours) / statistics.median(theirs)
    return Figure(figure="import, beside import boto3", value=ratio, unit="x", bar=1.2, better="lower")


def import_seconds(name: str, environment: Mapping[str, str]) -> float:
    """How long a fresh interpreter takes to import a module."""
    probe = f"import time; begun = time.perf_counter(); import {name}; print(time.perf_counter() - begun)"
    shown = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True, env=environment)
    return float(shown.stdout)


def timed(work: Callable[[], object]) -> float:
    """How long ``work`` takes, in seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def worked(work: Callable[[], object]) -> Sequence[float]:
    """How long ``work`` takes, in seconds by the clock and of this thread's processor time."""
    begun, used = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - begun, time.thread_time() - used


if __name__ == "__main__":
    main()
