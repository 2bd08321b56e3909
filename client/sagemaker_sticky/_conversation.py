"""What one session knows and asks for, without I/O.

A client sends the calls that a :class:`Conversation` makes and hands the answers back; a synchronous and an
asynchronous client can share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from sagemaker_sticky_protocol import SessionInfo, is_session_id, parse_new_session

from ._calls import Call, Content, Message, close_call, open_call, turn_call
from ._errors import InvalidResponse, SessionClosed, SessionLost, StickyError
from ._turn import Turn, Usage, read_expiry, read_session


class Conversation:
    """State of one session: what the endpoint said of it last, and the transcript as this side saw it."""

    def __init__(self, *, proposed_id: str | None = None, messages: Sequence[Message] = ()) -> None:
        """Nothing is open yet; ``messages`` is what the session will hold from the start."""
        self.messages: list[dict[str, Any]] = [deepcopy(dict(message)) for message in messages]
        self.usage = Usage()
        self.turn = 0
        self.info: SessionInfo | None = None
        self.expires_at: datetime | None = None
        self.closed = False
        self._proposed_id = proposed_id
        self._id: str | None = None

    @property
    def is_open(self) -> bool:
        """Between open and close, as far as this side knows."""
        return self._id is not None and not self.closed

    @property
    def id(self) -> str:
        """The id that the container gave.

        Raises:
            SessionClosed: it has not been opened.
        """
        if self._id is None:
            raise SessionClosed("the session has not been opened; use it in a 'with' statement")
        return self._id

    def open(self) -> Call:
        """The call that opens the session."""
        if self._id is not None:
            raise SessionClosed(f"session {self._id} was opened before; make a new one")
        return open_call(session_id=self._proposed_id, messages=self.messages)

    def opened(self, new_session: str | None, body: Mapping[str, Any]) -> None:
        """Take in the answer of an open: its session header and its body.

        Raises:
            InvalidResponse: the endpoint announced no session.
        """
        session_id, expires_at = parse_new_session(new_session or "")
        if not is_session_id(session_id):
            raise InvalidResponse(
                f"the endpoint announced no session (header {new_session!r}); does its container know sessions?"
            )
        self.info = read_session(body)
        expiry = expires_at or (self.info and self.info.expires_at)
        self.expires_at = read_expiry(expiry) if expiry else None
        self._id = session_id

    def say(self, content: Content, parameters: Mapping[str, Any], *, stream: bool = False) -> Call:
        """The call of one turn.

        Raises:
            SessionClosed: the session is not open.
            InvalidRequest: before sending; see :func:`turn_call`.
        """
        if self.closed:
            raise SessionClosed(f"session {self.id} is closed")
        return turn_call(content, parameters, session_id=self.id, stream=stream)

    def answered(self, content: Content, parameters: Mapping[str, Any], turn: Turn) -> None:
        """Take in a turn that was answered to its end."""
        said = [{"role": "user", "content": content}] if isinstance(content, str) else content
        if parameters.get("history") == "full" and not isinstance(content, str):
            self.messages.clear()  # the list was the whole conversation, not what is new
        self.messages += [deepcopy(dict(message)) for message in (*said, turn.message)]
        self.usage += turn.usage
        self.info = turn.session or self.info
        self.turn = turn.session.turn if turn.session else self.turn + 1

    def close(self) -> Call:
        """The call that closes the session; from here on it counts as closed."""
        self.closed = True
        return close_call(self.id)


def is_gone(error: StickyError) -> bool:
    """Whether a failed close means that there was nothing left to close.

    SageMaker's router answers 400 for a session that it does not know; its words for that are not documented.
    """
    return isinstance(error, SessionLost) or error.code == "ValidationError"
