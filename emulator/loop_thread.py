"""An event loop in a thread of its own, for callers that are not asynchronous themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import TypeVar

STOP_SECONDS = 90.0
"""How long a thread may take to stop, in seconds: above the longest grace that a container gets."""

T = TypeVar("T")


@contextmanager
def in_thread(serve: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Hold what an async context manager gives, on an event loop in a thread of its own.

    An error on entering or leaving it is raised here; Ctrl-C leaves it in order.
    """
    entered: Future[T] = Future()
    left: Future[None] = Future()
    leave: Future[Callable[[], object]] = Future()

    async def main() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        leave.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        async with serve() as value:
            entered.set_result(value)
            await asyncio.Event().wait()

    def run() -> None:
        try:
            with suppress(asyncio.CancelledError):
                asyncio.run(main())
            left.set_result(None)
        except BaseException as error:
            leave.cancel()
            (left if entered.done() else entered).set_exception(error)

    # A daemon: a second Ctrl-C ends the interpreter, and the containers end with their parent.
    thread = threading.Thread(target=run, name="emulator", daemon=True)
    thread.start()
    try:
        yield entered.result()
    finally:
        with suppress(RuntimeError, CancelledError):  # it failed: its loop is closed, or was never there
            leave.result()()
        thread.join(STOP_SECONDS)
    if thread.is_alive():
        raise RuntimeError(f"the emulator did not stop within {STOP_SECONDS:g} s")
    left.result()
