"""One session with the endpoint, for an event loop."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

from .._core.answers import Turn
from .._core.calls import Content
from .._core.conversation import Conversation
from .._core.recovery import Recovery
from .._core.session_state import SessionState
from .._core.steps import arun
from .._core.turns import closing, invoking, opening
from ..errors import StickyError
from .stream import AsyncStream
from .transport import AsyncTransport

logger = logging.getLogger(__name__)


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
