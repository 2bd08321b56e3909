"""The asynchronous twin, through boto3 in threads, against the same endpoint and the same faults."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sagemaker_sticky import (
    InvalidRequest,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionLost,
    StickyClient,
    StreamInterrupted,
    aio,
)

from emulator import Emulator
from emulator.pytest_plugin import Control

from .conftest import make_runtime
from .conversation import FIRST, SECOND, THIRD, reply, transcript
from .test_streams import ONE_EVENT

Talk = Callable[[aio.AsyncStickyClient], Coroutine[Any, Any, None]]


@pytest.fixture
def run(emulator: Emulator) -> Callable[[Talk], None]:
    """Runs a coroutine function with a client, and sees that it leaves no thread behind."""

    @asynccontextmanager
    async def serving() -> AsyncIterator[aio.AsyncStickyClient]:
        runtime = make_runtime(emulator, max_pool_connections=64)
        async with aio.AsyncStickyClient("sticky", runtime=runtime, max_concurrency=64) as client:
            yield client
        runtime.close()

    def run(talk: Talk) -> None:
        async def main() -> None:
            async with serving() as client:
                await talk(client)

        asyncio.run(main())
        for thread in threading.enumerate():
            if thread.name.startswith("sagemaker-sticky"):
                thread.join(10)
                assert not thread.is_alive()

    return run


def test_a_session_opens_speaks_and_closes(run: Callable[[Talk], None], control: Control) -> None:
    async def talk(client: aio.AsyncStickyClient) -> None:
        async with client.session(system="Be brief.") as session:
            assert (await session.invoke(FIRST)).text == reply(FIRST)
            async with session.stream(SECOND) as stream:
                pieces = [piece async for piece in stream]
            assert "".join(pieces) == stream.text == reply(SECOND)
            assert (stream.finish_reason, stream.turn is not None) == ("stop", True)
            assert [piece async for piece in session.stream([{"role": "user", "content": THIRD}])]
            assert (session.turn, session.reopened, session.usage.completion_tokens > 0) == (3, 0, True)
            session.rewind(1)
            await session.invoke(SECOND)
            assert session.messages[1:] == transcript(FIRST, SECOND)
            assert session.id in control.sessions
        assert session.id not in control.sessions
        with pytest.raises(SessionClosed):
            await session.invoke(SECOND)

    run(talk)


def test_a_lost_session_is_not_the_callers_problem(run: Callable[[Talk], None], control: Control) -> None:
    async def talk(client: aio.AsyncStickyClient) -> None:
        async with client.session() as session:
            await session.invoke(FIRST)
            await asyncio.to_thread(control.kill, control.sessions[session.id])
            assert (await session.invoke(SECOND)).text == reply(SECOND)
            assert session.reopened == 1
            control.expire(session.id)
            assert "".join([piece async for piece in session.stream(THIRD)]) == reply(THIRD)
            assert (session.reopened, session.messages) == (2, transcript(FIRST, SECOND, THIRD))
        async with client.session(recover=False) as session:
            control.expire(session.id)
            with pytest.raises(SessionLost):
                await session.invoke(FIRST)

    run(talk)


@pytest.mark.parametrize("stream", [False, True])
def test_a_session_that_stands_elsewhere_goes_on_in_another(
    run: Callable[[Talk], None], client: StickyClient, stream: bool
) -> None:
    async def talk(asynchronous: aio.AsyncStickyClient) -> None:
        async with asynchronous.session() as session:
            await session.invoke(FIRST)
            attached = asynchronous.attach(session.id)
            await attached.invoke(SECOND)
            await asyncio.to_thread(client.attach(session.id).invoke, "Something that nobody else heard.")
            if stream:
                assert "".join([piece async for piece in session.stream(THIRD)]) == reply(THIRD)
            else:
                assert (await session.invoke(THIRD)).text == reply(THIRD)
            assert (session.reopened, session.turn, session.messages) == (1, 2, transcript(FIRST, THIRD))
            with pytest.raises(SessionConflict):
                await (anext(attached.stream(THIRD)) if stream else attached.invoke(THIRD))

    run(talk)


def test_a_stream_breaks_and_resumes(run: Callable[[Talk], None], control: Control) -> None:
    async def talk(client: aio.AsyncStickyClient) -> None:
        async with client.session() as session:
            await session.invoke(FIRST)
            control.fault(operation="stream", break_after_bytes=3 * ONE_EVENT)
            with pytest.raises(StreamInterrupted) as caught:
                async for _ in session.stream(SECOND):
                    pass
            assert caught.value.text
            assert reply(SECOND).startswith(caught.value.text)
            control.fault(operation="stream", cut_after_bytes=0)
            assert "".join([piece async for piece in session.stream(SECOND)]) == reply(SECOND)
            session.rewind(1)
            control.fault(operation="stream", cut_after_bytes=2 * ONE_EVENT, part_bytes=[1, 5])
            assert "".join([piece async for piece in session.stream(SECOND, resume=True)]) == reply(SECOND)
            assert session.messages == transcript(FIRST, SECOND)

    run(talk)


def test_a_stream_that_is_left_or_cancelled_ends(run: Callable[[Talk], None], control: Control) -> None:
    async def talk(client: aio.AsyncStickyClient) -> None:
        async with client.session() as session:
            await session.invoke(FIRST)
            async with session.stream("a long story " * 20) as stream:
                await anext(stream)
                with pytest.raises(SessionBusy):
                    await session.invoke(SECOND)
            assert stream.closed
            control.fault(operation="stream", delay_seconds=0.5)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(session.stream(SECOND)), 0.1)
            assert (await session.invoke(SECOND)).text == reply(SECOND)
            assert session.messages == transcript(FIRST, SECOND)

    run(talk)


def test_without_a_session(run: Callable[[Talk], None]) -> None:
    async def talk(client: aio.AsyncStickyClient) -> None:
        assert (await client.invoke("Hello")).text == "You said: Hello"
        assert "".join([piece async for piece in client.stream("Hello")]) == "You said: Hello"
        with pytest.raises(InvalidRequest):
            await client.invoke("")
        with pytest.raises(InvalidRequest, match="paramters"):
            await client.invoke("Hello", paramters=1)
        with pytest.raises(InvalidRequest, match="paramters"):
            async with client.stream("Hello", paramters=1):
                pass

    run(talk)


def test_another_process_attaches(run: Callable[[Talk], None], control: Control, client: StickyClient) -> None:
    session = client.session().open()
    session.invoke(FIRST)

    async def talk(client: aio.AsyncStickyClient) -> None:
        async with client.attach(session.id) as attached:
            assert (await attached.invoke(SECOND)).text == reply(SECOND)
            assert attached.turn == 2
        assert session.id in control.sessions

    run(talk)
    session.close()


def test_many_streams_at_once_do_not_mix(run: Callable[[Talk], None]) -> None:
    async def one(client: aio.AsyncStickyClient, number: int) -> str:
        async with client.session() as session, session.stream(f"I am {number}.") as stream:
            return "".join([piece async for piece in stream])

    async def talk(client: aio.AsyncStickyClient) -> None:
        answers = await asyncio.gather(*(one(client, number) for number in range(100)))
        assert answers == [f"You said: I am {number}." for number in range(100)]

    run(talk)


def test_an_error_of_the_block_is_not_hidden_by_a_failing_close(run: Callable[[Talk], None], control: Control) -> None:
    async def talk(client: aio.AsyncStickyClient) -> None:
        async def fail() -> None:
            async with client.session():
                control.fault(answer=424)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()

    run(talk)


def test_every_public_name_has_its_twin() -> None:
    import sagemaker_sticky

    for name in ("StickyClient", "Session", "Stream"):
        blocking, twin = getattr(sagemaker_sticky, name), getattr(aio, f"Async{name}")
        public = {each for each in dir(blocking) if not each.startswith("_")}
        assert public == {each for each in dir(twin) if not each.startswith("_")}
