"""What a session knows, blocking or not: its face adds how calls are made."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from sagemaker_sticky_protocol import ErrorCode

from ..errors import SessionBusy
from .answers import Usage
from .calls import Content
from .conversation import Conversation
from .recovery import Recovery
from .stream_state import StreamState
from .turns import saying


class SessionState:
    """What a session knows; the same whether it blocks or not."""

    def __init__(self, conversation: Conversation, recovery: Recovery, *, owned: bool = True) -> None:
        """Nothing is sent; ``owned`` is whether leaving the ``with`` block closes the session."""
        self._conversation = conversation
        self._recovery = recovery
        self._owned = owned

    @property
    def id(self) -> str:
        """The session's id, as the container gave it; another one after the session was reopened.

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
        """Turns answered so far, those before the session was reopened included."""
        return self._conversation.turn

    @property
    def reopened(self) -> int:
        """How often the session was lost, elsewhere or about to expire, and its conversation went on in a new one."""
        return self._conversation.reopened

    @property
    def usage(self) -> Usage:
        """Tokens of all turns so far, added up; those that were rewound too, as they were computed."""
        return self._conversation.usage

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The transcript as OpenAI messages: what the session was opened with, then each turn answered to its end.

        Of a session that was attached without its messages: what was said since.
        """
        return list(self._conversation.messages)

    @property
    def served_by(self) -> str | None:
        """The instance that answered last, as the container knows it."""
        return self._conversation.info.served_by if self._conversation.info else None

    def rewind(self, turns: int) -> None:
        """Keep the first ``turns`` turns, and forget what was said after them. Sent with the next turn.

        Raises:
            InvalidRequest: there are not so many turns.
            SessionClosed: the session is not open.
        """
        self._conversation.rewind(turns)

    def _refuse_overlap(self, stream: StreamState | None) -> None:
        """A turn waits in the container for the one before it; were that unread, it would wait for its own caller."""
        if stream is not None and not stream.closed:
            raise SessionBusy(
                f"a stream of session {self.id} is still open: read it to its end or close it first",
                code=ErrorCode.SESSION_BUSY.value,
            )

    def _stream_options(self, content: Content, parameters: dict[str, Any], *, resume: bool) -> dict[str, Any]:
        """What a stream of this session is made of."""
        conversation, recovery = self._conversation, self._recovery
        return {
            "begin": partial(saying, conversation, recovery, content, parameters, stream=True),
            "resume": resume,
            "recovers": recovery.enabled and conversation.complete,
            "on_end": partial(conversation.answered, content, parameters),
        }
