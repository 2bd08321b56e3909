"""One session with the endpoint: a conversation that it remembers."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

from ._core.answers import Turn
from ._core.calls import Content
from ._core.conversation import Conversation
from ._core.recovery import Recovery
from ._core.session_state import SessionState
from ._core.steps import run
from ._core.turns import closing, invoking, opening
from ._transport import Transport
from .errors import StickyError
from .stream import Stream

logger = logging.getLogger(__name__)


class Session(SessionState):
    """A context manager: opens the session at enter, closes it at exit, whatever happened between.

    Made by :meth:`StickyClient.session`. A turn says only what is new. Not for several threads at once.

    A session that the endpoint has lost, or that stands at another turn there, is opened again with the transcript, and
    the turn is said there, once; :attr:`reopened` counts that. One that will expire soon is left for a new one before
    its next turn.
    """

    def __init__(
        self, transport: Transport, conversation: Conversation, recovery: Recovery, *, owned: bool = True
    ) -> None:
        """Nothing is sent before :meth:`open`."""
        super().__init__(conversation, recovery, owned=owned)
        self._transport = transport
        self._stream: Stream | None = None

    def open(self) -> Session:
        """Open the session, for use without ``with``; it lives until :meth:`close` or until it expires.

        Raises:
            StickyError: it could not be opened: SessionConflict, TooManySessions and the others.
        """
        run(opening(self._conversation), self._transport.perform)
        return self

    def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Say something and wait for the whole answer: at most 60 s, so stream what is long.

        Args:
            content: Text, or OpenAI messages: only what is new.
            **parameters: For text the engine's sampling parameters (``temperature``, ``max_new_tokens``); for messages
                OpenAI's fields (``max_tokens``, ``tools``), and ``history="full"`` for a list that is the whole
                conversation.

        Raises:
            InvalidRequest: wrong parameters, empty text, or a body over 6 MiB; some of it is found before sending.
            SessionLost: the endpoint has no such session any more, and it was not or could not be reopened.
            SessionConflict: the session stands at another turn there than is counted here, and likewise.
            InvalidResponse: the answer is not that of the turn asked for, or of no turn at all. It does not count.
            SessionBusy: a stream of this session was neither read to its end nor closed.
            TimedOut: no answer within the client's read timeout or SageMaker's 60 s.
            StickyError: any other failure. The session stands as it did before: where the endpoint may have answered
                all the same, the next turn says how many count.
        """
        self._refuse_overlap(self._stream)
        return run(invoking(self._conversation, self._recovery, content, parameters), self._transport.perform)

    def stream(self, content: Content, /, *, resume: bool = False, **parameters: Any) -> Stream:
        """Say something and read the answer while it is written. The way for long answers.

        Arguments and errors are those of :meth:`invoke`. The turn counts once the stream was read to its end. One that
        is left early ends the generation, and does not count.

        Args:
            content: Text, or OpenAI messages: only what is new.
            resume: Whether the model is asked to go on where a stream broke after it gave text. Otherwise, and where
                that cannot be (an answer bound to a grammar, reasoning that is parsed), StreamInterrupted carries the
                text that came.
            **parameters: As for :meth:`invoke`.
        """
        self._refuse_overlap(self._stream)
        options = self._stream_options(content, parameters, resume=resume)
        self._stream = Stream(perform=self._transport.perform, **options)
        return self._stream

    def close(self) -> None:
        """Close the session: its memory is released. Nothing happens where it is closed or gone already.

        Raises:
            StickyError: the endpoint could not be told; the session lives until it expires.
        """
        if self._stream is not None:
            self._stream.close()
        run(closing(self._conversation), self._transport.perform)

    def __enter__(self) -> Session:
        """Open the session, as :meth:`open` does; one that was attached or opened before is entered as it is."""
        return self if self._conversation.is_open else self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the session, unless it was attached; a failing close never hides the error of the block."""
        if not self._owned:
            if self._stream is not None:
                self._stream.close()
            return
        try:
            self.close()
        except StickyError as failure:
            if error is None:
                raise
            logger.warning("session %s could not be closed: %s", self.id, failure)
