import asyncio

import pytest
from sagemaker_sticky_protocol import ErrorCode, is_session_id

from container.config import ContainerConfig
from container.engine_echo import EchoEngine
from container.errors import ServerError
from container.journal import Journal
from container.sessions import SessionTable
from container.transcript import ChatTemplate


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table(clock: Clock) -> SessionTable:
    template = ChatTemplate(EchoEngine(ContainerConfig(engine="echo")).tokenizer)
    return make_table(template, clock, journal=None)


def make_table(template: ChatTemplate, clock: Clock, journal: Journal | None) -> SessionTable:
    return SessionTable(
        template,
        ttl_seconds=60,
        max_sessions=3,
        queue=1,
        ranks=2,
        served_by="i-0",
        clock=clock,
        journal=journal,
        count=lambda _event: None,
    )


def code(problem: pytest.ExceptionInfo[ServerError]) -> ErrorCode:
    return problem.value.code


def test_an_id_made_here_is_a_session_id_of_128_random_bits(table: SessionTable) -> None:
    ids = {table.open(None, ()).id for _ in range(3)}
    assert len(ids) == 3
    assert all(is_session_id(each) and len(each) == 32 for each in ids)


def test_a_proposed_id_is_taken_once(table: SessionTable) -> None:
    assert table.open("my-session-1", ()).id == "my-session-1"
    with pytest.raises(ServerError, match="open already") as problem:
        table.open("my-session-1", ())
    assert code(problem) is ErrorCode.SESSION_CONFLICT


@pytest.mark.parametrize("proposed", ["", "a_b", "-a", "a-", "NEW_SESSION", "x" * 257, "a.b", "ä"])
def test_a_proposed_id_that_breaks_the_pattern_is_refused(table: SessionTable, proposed: str) -> None:
    with pytest.raises(ServerError, match="letters, digits and inner hyphens") as problem:
        table.open(proposed, ())
    assert code(problem) is ErrorCode.INVALID_REQUEST


def test_the_table_is_bounded(table: SessionTable) -> None:
    for _ in range(3):
        table.open(None, ())
    with pytest.raises(ServerError, match="at most 3") as problem:
        table.open(None, ())
    assert code(problem) is ErrorCode.TOO_MANY_SESSIONS


def test_an_expired_session_is_never_served_and_told_apart_from_an_unknown_one(
    table: SessionTable, clock: Clock
) -> None:
    table.open("a", ())
    clock.now += 60
    for reaped in (False, True):
        with pytest.raises(ServerError, match="expired at 1970-01-12T13:47:40Z") as problem:
            table.find("a")
        assert code(problem) is ErrorCode.SESSION_EXPIRED
        if not reaped:
            assert table.reap() == ["a"]
    with pytest.raises(ServerError, match="not open here") as problem:
        table.find("b")
    assert code(problem) is ErrorCode.SESSION_NOT_FOUND


def test_expiry_leaves_a_running_turn_alone(table: SessionTable, clock: Clock) -> None:
    async def check() -> None:
        table.open("a", ())
        async with table.turn("a"):
            clock.now += 61
            assert table.reap() == []
        assert table.reap() == ["a"]

    asyncio.run(check())


def test_turns_of_one_session_run_one_after_another_and_the_queue_is_bounded(table: SessionTable) -> None:
    order = []

    async def turn(name: str, may_end: asyncio.Event) -> None:
        async with table.turn("a"):
            order.append(f"{name} begins")
            await may_end.wait()
            order.append(f"{name} ends")

    async def check() -> None:
        table.open("a", ())
        may_end = asyncio.Event()
        first = asyncio.create_task(turn("first", may_end))
        second = asyncio.create_task(turn("second", may_end))
        await asyncio.sleep(0)
        with pytest.raises(ServerError, match="1 turns of session 'a' wait already, at most 1") as problem:
            await turn("third", may_end)
        assert code(problem) is ErrorCode.SESSION_BUSY
        may_end.set()
        await asyncio.gather(first, second)

    asyncio.run(check())
    assert order == ["first begins", "first ends", "second begins", "second ends"]


def test_close_waits_for_the_running_turn(table: SessionTable) -> None:
    async def check() -> None:
        table.open("a", ())
        async with table.turn("a"):
            closing = asyncio.create_task(table.close("a"))
            await asyncio.sleep(0)
            assert not closing.done()
            assert len(table) == 1
        await closing
        assert len(table) == 0

    asyncio.run(check())
