"""An answer while it is written, for an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any

from .._core.calls import Call
from .._core.error_mapping import STREAM_BREAKS
from .._core.steps import arun
from .._core.stream_state import Begin, StreamState


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
