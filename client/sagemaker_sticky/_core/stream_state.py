"""What a stream keeps, and how it goes on after a break, blocking or not: its face adds how events are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sagemaker_sticky_protocol import SessionInfo

from ..errors import InvalidResponse, StickyError, StreamInterrupted
from .answers import StreamAnswer, Turn, Usage
from .recovery import may_ask_again
from .steps import Steps
from .stream_reader import StreamReader

Begin = Callable[..., Steps[StreamAnswer]]
"""Gives the steps that begin a stream; after a break, ``answer_prefix=`` is the text that came before it."""


class StreamState:
    """What a stream has given so far; the same whether it blocks or not.

    ``text``, ``usage``, ``finish_reason`` and ``session`` are complete when it was read to its end.
    """

    def __init__(
        self,
        begin: Begin,
        *,
        resume: bool = False,
        recovers: bool = False,
        on_end: Callable[[Turn], None] | None = None,
    ) -> None:
        """Nothing is sent.

        Args:
            begin: Gives the steps that begin it.
            resume: Whether to go on after a break, however far it had come.
            recovers: Whether to begin again after a break before the first text.
            on_end: Gets the turn, once, when the stream was read to its end.
        """
        self.closed = False
        """Whether it ended, broke or was closed."""
        self._reader = StreamReader()
        self._begin = begin
        self._resume = resume
        self._recovers = recovers
        self._on_end = on_end
        self._turn: Turn | None = None
        self._broke_at = -1

    @property
    def text(self) -> str:
        """What has arrived so far."""
        return self._reader.text

    @property
    def usage(self) -> Usage | None:
        """Tokens of the turn; None before the end."""
        return self._reader.usage

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped; None before the end."""
        return self._reader.finish_reason

    @property
    def session(self) -> SessionInfo | None:
        """The session after this turn; None before the end, and outside a session."""
        return self._reader.session

    @property
    def turn(self) -> Turn | None:
        """The whole turn; None until the stream was read to its end."""
        return self._turn

    def _beginning(self) -> Steps[Any]:
        """The steps that begin it, or begin it again after the text so far; they give the events to read."""
        answer = yield from self._begin(answer_prefix=self.text)
        self._reader = StreamReader(request_id=answer.request_id, text=self.text)
        return answer.events

    def _read(self, event: dict[str, Any]) -> Iterator[str]:
        """The text that an event brings."""
        part = event.get("PayloadPart")
        return self._reader.feed(part["Bytes"] if part else b"")

    def _going_on(self, error: Exception) -> Steps[Any]:
        """The steps after a break: they give events to read on with, None where nothing was missing.

        Raises:
            StreamInterrupted: it cannot go on.
        """
        if self._reader.done and not isinstance(error, StreamInterrupted):
            for _ in self._reader.end():
                pass
            return None
        text = self.text
        interrupted = error if isinstance(error, StreamInterrupted) else self._reader.interrupted(error)
        interrupted.text = text
        may_begin = len(text) > self._broke_at if self._resume else self._recovers and not text and self._broke_at < 0
        if not (may_begin and may_ask_again(interrupted)):
            raise interrupted from (error if interrupted is not error else None)
        self._broke_at = len(text)
        try:
            return (yield from self._beginning())
        except StickyError as failure:
            raise interrupted from failure

    def _end(self) -> None:
        """Take the turn in, now that the stream was read to its end.

        Raises:
            StreamInterrupted: it is not the turn that was asked for.
        """
        turn = self._reader.turn()
        if self._on_end is not None:
            try:
                self._on_end(turn)
            except InvalidResponse as error:
                raise self._reader.interrupted(error) from error
        self._turn = turn
