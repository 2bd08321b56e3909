"""One session with the endpoint: a conversation that it remembers."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any

from sagemaker_sticky_protocol import ErrorCode

from ._calls import Content
from ._conversation import Conversation, is_gone
from ._errors import SessionBusy, StickyError
from ._stream import Stream
from ._transport import Transport
from ._turn import Turn, Usage, read_turn

logger = logging.getLogger(__name__)


class Session:
    """A context manager: opens the session at enter, closes it at exit, whatever happened between.

    Made by :meth:`StickyClient.session`. A turn says only what is new. Not for several threads at once.
    """

    def __init__(self, transport: Transport, conversation: Conversation) -> None:
        """Nothing is sent before enter."""
        self._transport = transport
        self._conversation = conversation
        self._stream: Stream | None = None

    @property
    def id(self) -> str:
        """The session's id, as the container gave it.

        Raises:
            SessionClosed: it has not been opened.
        """
        return self._conversation.id

    @property
    def expires_at(self) -> datetime | None:
        """When the endpoint forgets the session, in UTC; turns do not put it off. None where it did not say."""
        return self._conversation.expires_at

    @property
    def turn(self) -> int:
        """Turns answered so far."""
        return self._conversation.turn

    @property
    def usage(self) -> Usage:
        """Tokens of all turns so far, added up."""
        return self._conversation.usage

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The transcript as OpenAI messages: what the session was opened with, then each turn answered to its end."""
        return list(self._conversation.messages)

    @property
    def served_by(self) -> str | None:
        """The instance that answered last, as the container knows it."""
        return self._conversation.info.served_by if self._conversation.info else None

    def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Say something and wait for the whole answer.

        Args:
            content: Text, or OpenAI messages: only what is new.
            **parameters: For text the engine's sampling parameters (``temperature``, ``max_new_tokens``); for messages
                OpenAI's fields (``max_tokens``, ``tools``), and ``history="full"`` for a list that is the whole
                conversation.

        Raises:
            InvalidRequest: wrong parameters, empty text, or a body over 6 MiB; some of it is found before sending.
            SessionLost: the endpoint has no such session any more.
            SessionBusy: a stream of this session was neither read to its end nor closed.
            TimedOut: no answer within the client's read timeout or SageMaker's 60 s; the turn may count all the same.
            StickyError: any other failure; the session stands as it did before.
        """
        self._refuse_overlap()
        answer = self._transport.send(self._conversation.say(content, parameters))
        turn = read_turn(answer.json())
        self._conversation.answered(content, parameters, turn)
        return turn

    def stream(self, content: Content, /, **parameters: Any) -> Stream:
        """Say something and read the answer while it is written.

        Arguments and errors are those of :meth:`invoke`. The turn counts once the stream was read to its end. One that
        is left early ends the generation, and the endpoint drops the turn unless it was complete by then.
        """
        self._refuse_overlap()
        answer = self._transport.stream(self._conversation.say(content, parameters, stream=True))
        take_in = partial(self._conversation.answered, content, parameters)
        self._stream = Stream(answer.events, request_id=answer.request_id, on_end=take_in)
        return self._stream

    def close(self) -> None:
        """Close the session: its memory is released. Nothing happens where it is closed or gone already.

        Raises:
            StickyError: the endpoint could not be told; the session lives until it expires.
        """
        if not self._conversation.is_open:
            return
        if self._stream is not None:
            self._stream.close()
        try:
            self._transport.send(self._conversation.close())
        except StickyError as error:
            if not is_gone(error):
                raise

    def __enter__(self) -> Session:
        """Open the session.

        Raises:
            StickyError: it could not be opened: SessionConflict, TooManySessions and the others.
        """
        answer = self._transport.send(self._conversation.open())
        self._conversation.opened(answer.new_session, answer.json())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the session; a failing close never hides the error of the block."""
        try:
            self.close()
        except StickyError as failure:
            if error is None:
                raise
            logger.warning("session %s could not be closed: %s", self.id, failure)

    def _refuse_overlap(self) -> None:
        """A turn waits in the container for the one before it; were that unread, it would wait for its own caller."""
        if self._stream is not None and not self._stream.closed:
            raise SessionBusy(
                f"a stream of session {self.id} is still open: read it to its end or close it first",
                code=ErrorCode.SESSION_BUSY.value,
            )
