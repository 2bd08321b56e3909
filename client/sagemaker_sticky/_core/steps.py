"""How one core serves two clients: what a session does is a generator that yields calls and is sent their answers.

Such :data:`Steps` do no I/O. :func:`run` walks them with functions that block, :func:`arun` with coroutines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeVar

from ..errors import StickyError
from .calls import Call, Content, turn_call

T = TypeVar("T")
Steps = Generator[Call, Any, T]
"""Yields calls; each is answered with an Answer, a StreamAnswer if the call is a stream, or the error raised in it."""


def once(call: Call) -> Steps[Any]:
    """The steps of one call and nothing else; they give its answer."""
    return (yield call)


def asking(content: Content, parameters: Mapping[str, Any], *, answer_prefix: str = "") -> Steps[Any]:
    """The steps of a stream outside a session; they give the StreamAnswer."""
    return once(turn_call(content, parameters, stream=True, answer_prefix=answer_prefix))


def run(steps: Steps[T], perform: Callable[[Call], Any]) -> T:
    """Walk the steps to their end; ``perform`` answers a call, or raises a StickyError."""
    try:
        call = next(steps)
        while True:
            try:
                answer = perform(call)
            except StickyError as error:
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def arun(steps: Steps[T], perform: Callable[[Call], Awaitable[Any]]) -> T:
    """As :func:`run`, for an asynchronous ``perform``."""
    try:
        call = next(steps)
        while True:
            try:
                answer = await perform(call)
            except StickyError as error:
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
