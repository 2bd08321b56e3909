from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from emulator.loop_thread import in_thread


@asynccontextmanager
async def resource(events: list[str], *, leave: Exception | None = None) -> AsyncIterator[str]:
    events.append("entered")
    try:
        yield "value"
    finally:
        await asyncio.sleep(0)
        events.append("left")
        if leave is not None:
            raise leave


def test_it_holds_and_leaves() -> None:
    events: list[str] = []
    before = set(threading.enumerate())
    with in_thread(lambda: resource(events)) as value:
        assert (value, events) == ("value", ["entered"])
    assert events == ["entered", "left"]
    assert set(threading.enumerate()) <= before


def test_it_leaves_when_the_body_is_interrupted() -> None:
    events: list[str] = []
    with pytest.raises(KeyboardInterrupt), in_thread(lambda: resource(events)):
        raise KeyboardInterrupt
    assert events == ["entered", "left"]


def test_it_tells_an_error_on_leaving() -> None:
    with pytest.raises(ZeroDivisionError), in_thread(lambda: resource([], leave=ZeroDivisionError())):
        pass
