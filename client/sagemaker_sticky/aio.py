"""The asynchronous twin: the same sessions, recovery and errors, for an event loop.

Example::

    async with AsyncStickyClient("my-endpoint") as client, client.session() as session:
        print((await session.invoke("My name is Ada.")).text)
        async with session.stream("And what is my name?") as stream:
            async for piece in stream:
                print(piece, end="", flush=True)

boto3's calls run in threads; two cores hold two hundred streams at once. Cancelling a call does not take it back: its
thread waits for the answer, and a turn of that session waits for it. Leaving a stream that has begun ends it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._core.answers import Turn, read_turn
from ._core.calls import Call, Content, Message, turn_call
from ._core.conversation import Conversation, new_conversation
from ._core.error_mapping import STREAM_BREAKS
from ._core.recovery import ROLL_OVER_SECONDS, Recovery
from ._core.session_state import SessionState
from ._core.steps import arun, asking, once
from ._core.stream_state import Begin, StreamState
from ._core.turns import closing, invoking, opening
from ._threads import MAX_CONCURRENCY, AsyncTransport
from ._transport import make_transport
from .errors import StickyError

if TYPE_CHECKING:
    import boto3
    from botocore.client import BaseClient

__all__ = ["AsyncSession", "AsyncStickyClient", "AsyncStream"]

logger = logging.getLogger(__name__)


class AsyncStickyClient:
    """As :class:`~sagemaker_sticky.StickyClient`, for one event loop."""

    def __init__(
        self,
        endpoint_name: str,
        *,
        runtime: BaseClient | None = None,
        boto3_session: boto3.session.Session | None = None,
        region_name: str | None = None,
        target_variant: str | None = None,
        inference_component_name: str | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
    ) -> None:
        """As StickyClient's; sends nothing.

        Args:
            endpoint_name: Name of the endpoint.
            runtime: A boto3 client, used as it is; its ``max_pool_connections`` should be ``max_concurrency``.
            boto3_session: Where to make that client.
            region_name: Region of that client.
            target_variant: Production variant to call.
            inference_component_name: Inference component to call.
            max_concurrency: Calls and streams that may be under way at once, a thread each; more wait.
        """
        self.endpoint_name = endpoint_name
        self._blocking = make_transport(
            endpoint_name,
            runtime=runtime,
            boto3_session=boto3_session,
            region_name=region_name,
            target={"TargetVariant": target_variant, "InferenceComponentName": inference_component_name},
            max_connections=max_concurrency,
        )
        self._transport = AsyncTransport(self._blocking, max_concurrency=max_concurrency)

    def session(
        self,
        *,
        session_id: str | None = None,
        messages: Sequence[Message] | None = None,
        system: str | None = None,
        ttl: float | None = None,
        recover: bool = True,
        roll_over_seconds: float = ROLL_OVER_SECONDS,
    ) -> AsyncSession:
        """A session, opened when it is entered: ``async with client.session() as session``. See StickyClient's."""
        conversation = new_conversation(session_id=session_id, messages=messages, system=system, ttl=ttl)
        recovery = Recovery(enabled=recover, roll_over_seconds=roll_over_seconds)
        return AsyncSession(self._transport, conversation, recovery)

    def attach(self, session_id: str, *, messages: Sequence[Message] | None = None) -> AsyncSession:
        """A session that is open already; it stays open after an ``async with``. See StickyClient's."""
        return AsyncSession(self._transport, Conversation.attached(session_id, messages), Recovery(), owned=False)

    async def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Ask once, without a session, and wait for the whole answer. See StickyClient's."""
        answer = await arun(once(turn_call(content, parameters)), self._transport.perform)
        return read_turn(answer.json())

    def stream(self, content: Content, /, *, resume: bool = False, **parameters: Any) -> AsyncStream:
        """Ask once, without a session, and read the answer while it is written. See StickyClient's."""
        return AsyncStream(partial(asking, content, parameters), perform=self._transport.perform, resume=resume)

    async def close(self) -> None:
        """Give threads and connections back; what is under way still ends. A ``runtime`` given stays open."""
        self._transport.close()
        self._blocking.close()

    async def __aenter__(self) -> AsyncStickyClient:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()


class AsyncStream(StreamState):
    """As :class:`~sagemaker_sticky.Stream`. It begins when it is entered, or with the first piece.

    Raises:
        StickyError: on beginning.
        StreamInterrupted: while iterating.
    """

    def __init__(self, begin: Begin, *, perform: Callable[[Call], Awaitable[Any]], **options: Any) -> None:
        """Nothing is sent; ``perform`` answers calls, the rest is :class:`StreamState`'s."""
        super().__init__(begin, **options)
        self._perform = perform
        self._events: Any = None
        self._pieces = self._fetch()

    async def close(self) -> None:
        """Stop: the connection is closed, the container ends the generation. Nothing happens after the end."""
        self.closed = True
        await self._pieces.aclose()
        if self._events is not None:
            self._events.close()

    def __aiter__(self) -> AsyncIterator[str]:
        """The stream itself: it can be read once."""
        return self

    async def __anext__(self) -> str:
        """The next piece of text, never empty."""
        return await anext(self._pieces)

    async def __aenter__(self) -> AsyncStream:
        """Begin it."""
        await self._started()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it, whatever happened."""
        await self.close()

    async def _started(self) -> None:
        if self._events is None:
            try:
                self._events = await arun(self._beginning(), self._perform)
            except BaseException:
                self.closed = True
                raise

    async def _fetch(self) -> AsyncGenerator[str, None]:
        try:
            await self._started()
            while self._events is not None:
                events = self._events
                try:
                    async for event in events:
                        for piece in self._read(event):
                            yield piece
                    for piece in self._reader.end():
                        yield piece
                    self._events = None
                except STREAM_BREAKS as error:
                    self._events = await arun(self._going_on(error), self._perform)
                finally:
                    events.close()
        finally:
            self.closed = True
        self._end()


class AsyncSession(SessionState):
    """As :class:`~sagemaker_sticky.Session`, with ``async with`` and ``await``. Not for several tasks at once."""

    def __init__(
        self, transport: AsyncTransport, conversation: Conversation, recovery: Recovery, *, owned: bool = True
    ) -> None:
        """Nothing is sent before :meth:`open`."""
        super().__init__(conversation, recovery, owned=owned)
        self._transport = transport
        self._stream: AsyncStream | None = None

    async def open(self) -> AsyncSession:
        """Open the session, for use without ``async with``. See Session's."""
        await arun(opening(self._conversation), self._transport.perform)
        return self

    async def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Say something and wait for the whole answer. See Session's."""
        self._refuse_overlap(self._stream)
        steps = invoking(self._conversation, self._recovery, content, parameters)
        return await arun(steps, self._transport.perform)

    def stream(self, content: Content, /, *, resume: bool = False, **parameters: Any) -> AsyncStream:
        """Say something and read the answer while it is written. See Session's; it begins when it is entered."""
        self._refuse_overlap(self._stream)
        options = self._stream_options(content, parameters, resume=resume)
        self._stream = AsyncStream(perform=self._transport.perform, **options)
        return self._stream

    async def close(self) -> None:
        """Close the session: its memory is released. See Session's."""
        if self._stream is not None:
            await self._stream.close()
        await arun(closing(self._conversation), self._transport.perform)

    async def __aenter__(self) -> AsyncSession:
        """Open the session; one that was attached or opened before is entered as it is."""
        return self if self._conversation.is_open else await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the session, unless it was attached; a failing close never hides the error of the block."""
        if not self._owned:
            if self._stream is not None:
                await self._stream.close()
            return
        try:
            await self.close()
        except StickyError as failure:
            if error is None:
                raise
            logger.warning("session %s could not be closed: %s", self.id, failure)
