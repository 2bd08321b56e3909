"""boto3's blocking calls for an event loop: a thread for each call that is under way, one queue for each stream.

Threads and not aiobotocore: that takes a third less processor time for two hundred streams, but holds botocore to one
release. Here boto3 stays the one dependency, in any version, and a caller's own client works. A stream's thread reads
ahead to the stream's end, which is bounded by what a model writes, so that a slow reader holds no thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from .._core.answers import Answer, StreamAnswer
from .._core.calls import Call
from .._transport import Transport

MAX_CONCURRENCY = 256
"""Calls and streams that may be under way at once; more wait."""


class AsyncTransport:
    """Sends calls to one endpoint, from one event loop."""

    def __init__(self, transport: Transport, *, max_concurrency: int) -> None:
        """``transport`` does the work, in at most ``max_concurrency`` threads."""
        self._transport = transport
        self._threads = ThreadPoolExecutor(max_concurrency, thread_name_prefix="sagemaker-sticky")

    async def perform(self, call: Call) -> Answer | StreamAnswer:
        """Send a call, and read its answer if it is no stream.

        Raises:
            StickyError: every failure.
        """
        loop = asyncio.get_running_loop()
        if not call.stream:
            return await loop.run_in_executor(self._threads, self._transport.send, call)
        events = Events(loop)
        begun: asyncio.Future[StreamAnswer] = loop.create_future()
        self._threads.submit(self._pump, call, events, begun)
        try:
            return await begun
        except asyncio.CancelledError:
            events.close()
            raise

    def close(self) -> None:
        """Begin nothing more; threads end with what they do."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _pump(self, call: Call, events: Events, begun: asyncio.Future[StreamAnswer]) -> None:
        """In a thread: begin a stream and read it to its end."""
        try:
            answer = self._transport.stream(call)
        except BaseException as error:
            events.in_loop(_settle, begun, None, error)
            return
        events.in_loop(_settle, begun, StreamAnswer(events=events, request_id=answer.request_id), None)
        events.pump(answer.events)


class Events:
    """The events of a stream, as a thread reads them and one coroutine takes them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """``loop`` is the coroutine's."""
        self._loop = loop
        self._ready: deque[tuple[Any, Exception | None]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._waking = False
        self._source: Any = None
        self._closed = False

    def pump(self, source: Any) -> None:
        """In a thread: read botocore's EventStream to its end, or until :meth:`close`."""
        self._source = source
        try:
            if not self._closed:
                for event in source:
                    if self._closed:
                        break
                    self._put(event)
                self._put(None, StopAsyncIteration())
        except Exception as error:
            self._put(None, error)
        finally:
            source.close()

    def close(self) -> None:
        """Stop the reading thread, which closes the connection. Nothing happens where it is done."""
        self._closed = True
        # Closing a socket does not wake the thread that waits in it; ending its reading side does. urllib3 has that
        # since 2.3: before, the thread stops at the next event or at the read timeout.
        shutdown = getattr(getattr(self._source, "_raw_stream", None), "shutdown", None)
        if shutdown is not None:
            with suppress(ValueError, RuntimeError, OSError):  # already read to its end, or closed
                shutdown()

    def in_loop(self, callback: Callable[..., object], *arguments: Any) -> None:
        """In a thread: call something on the loop; nothing happens where the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    def __aiter__(self) -> Events:
        """The events themselves: they can be taken once."""
        return self

    async def __anext__(self) -> Any:
        """The next event; raises what the thread met."""
        while not self._ready:
            self._waiter = self._loop.create_future()
            await self._waiter
        event, error = self._ready.popleft()
        if error is not None:
            self._ready.append((None, StopAsyncIteration()))
            raise error
        return event

    def _put(self, event: Any, error: Exception | None = None) -> None:
        self._ready.append((event, error))
        # One wake-up for all that comes until it has happened. The event is there before the flag is read.
        if not self._waking:
            self._waking = True
            self.in_loop(self._wake)

    def _wake(self) -> None:
        self._waking = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():  # whoever waited was cancelled
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
