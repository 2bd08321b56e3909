"""What one session knows and asks for, without I/O.

Whoever talks to the endpoint sends the calls that a :class:`Conversation` makes and hands the answers back.

The endpoint counts the turns of one session there; this side counts those of the conversation, which may have gone
through several. ``_before`` is the difference: turns that the present session was given as messages when it opened.
A turn says which number it is to have, its answer which it has; where they differ, the answer is not taken in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from sagemaker_sticky_protocol import SessionInfo, is_session_id, parse_new_session

from ..errors import InvalidResponse, SessionClosed
from .answers import Turn, Usage, read_expiry, read_session
from .calls import Call, Content, Message, checked_session_id, close_call, invalid, open_call, turn_call


class Conversation:
    """State of one session: what the endpoint said of it last, and the transcript as this side saw it."""

    def __init__(
        self,
        *,
        proposed_id: str | None = None,
        messages: Sequence[Message] = (),
        ttl_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is open yet; ``messages`` is what the session will hold from the start."""
        self.messages: list[dict[str, Any]] = [_copied(message) for message in messages]
        self.usage = Usage()
        self.turn = 0
        self.reopened = 0
        self.info: SessionInfo | None = None
        self.expires_at: datetime | None = None
        self.closed = False
        self.complete = True
        """Whether ``messages`` is the whole conversation, so that it can be said again elsewhere."""
        self.in_doubt = False
        """Whether the endpoint may hold a turn that this side does not count; the next turn puts it right."""
        self._proposed_id = proposed_id
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._id: str | None = None
        self._life_seconds = 0.0
        self._before = 0
        self._knows_turn = True
        self._ends = {0: len(self.messages)}
        """Messages up to the end of each turn, as far as known, in order; 0 is the context."""

    @classmethod
    def attached(
        cls, session_id: str, messages: Sequence[Message] | None, *, clock: Callable[[], float] = time.time
    ) -> Conversation:
        """Of a session that is open already; ``messages`` is its transcript, None where that is not at hand.

        Raises:
            InvalidRequest: the id breaks the pattern.
        """
        conversation = cls(messages=messages or (), clock=clock)
        conversation._id = checked_session_id(session_id)
        conversation.complete = messages is not None
        conversation._knows_turn = False
        conversation._ends = {}
        return conversation

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

    @property
    def must_reopen(self) -> bool:
        """Whether it was rewound to where only a new session can begin."""
        return self.turn < self._before

    def is_near_expiry(self, margin_seconds: float) -> bool:
        """Whether less than ``margin_seconds`` is left, or less than a quarter of the life where that is shorter.

        Never where the endpoint's clock and this one are so far apart that the session opened after its expiry.
        """
        if self.expires_at is None or self._life_seconds <= 0:
            return False
        left = self.expires_at.timestamp() - self._clock()
        return left <= min(margin_seconds, self._life_seconds / 4)

    def open(self) -> Call:
        """The call that opens the session."""
        if self._id is not None:
            raise SessionClosed(f"session {self._id} was opened before; make a new one")
        return open_call(session_id=self._proposed_id, messages=self.messages, ttl_seconds=self._ttl_seconds)

    def open_again(self) -> Call:
        """The call that opens another session with the transcript. Its id is new: the old one may still be in use."""
        return open_call(messages=self.messages, ttl_seconds=self._ttl_seconds)

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
        info = read_session(body)
        self._set_expiry(expires_at or (info.expires_at if info else None))
        self.info = info
        if self._id is not None:
            self.reopened += 1
            self._before = self.turn
            self._knows_turn = True
            self.in_doubt = False
        self._id = session_id

    def say(
        self, content: Content, parameters: Mapping[str, Any], *, stream: bool = False, answer_prefix: str = ""
    ) -> Call:
        """The call of one turn; ``answer_prefix`` is what was given of its answer before a stream broke.

        Raises:
            SessionClosed: the session is not open.
            InvalidRequest: before sending; see :func:`turn_call`.
        """
        if self.closed:
            raise SessionClosed(f"session {self.id} is closed")
        # Said of the turns counted here, so that a turn in doubt is dropped if it is there and nothing else is.
        turns = self.turn - self._before
        numbers = {"turn": turns + 1, "rewind": turns if self.in_doubt else None} if self._knows_turn else {}
        return turn_call(content, parameters, session_id=self.id, stream=stream, answer_prefix=answer_prefix, **numbers)

    def answered(self, content: Content, parameters: Mapping[str, Any], turn: Turn) -> None:
        """Take in a turn that was answered to its end.

        Raises:
            InvalidResponse: it is an answer from another past: of no session, or of another turn than was asked for.
                Nothing is taken in.
        """
        if turn.session is None:
            raise InvalidResponse(f"the answer is not of session {self.id}: it names none")
        said = [{"role": "user", "content": content}] if isinstance(content, str) else content
        number = self._before + turn.session.turn
        whole = parameters.get("history") == "full" and not isinstance(content, str)
        if self._knows_turn and not whole and number != self.turn + 1:
            raise InvalidResponse(
                f"the answer is turn {turn.session.turn} of session {self.id}, "
                f"where turn {self.turn - self._before + 1} was asked for"
            )
        if self.expires_at is None:
            self._set_expiry(turn.session.expires_at)
        if whole:
            self._replace(said)  # the list was the whole conversation, not what is new
        else:
            self.messages += [_copied(message) for message in said]
        self.messages.append(_copied(turn.message))
        self.usage += turn.usage
        self.info = turn.session
        self.turn = number
        while self._ends and next(reversed(self._ends)) >= self.turn:
            self._ends.popitem()
        self._ends[self.turn] = len(self.messages)
        self._knows_turn = True
        self.in_doubt = False

    def rewind(self, turns: int) -> None:
        """Keep the first ``turns`` turns; the endpoint learns of it with the next turn.

        Raises:
            InvalidRequest: there are not so many.
            SessionClosed: the session is not open.
        """
        if not self.is_open:
            raise SessionClosed(f"session {self.id} is closed")
        if turns < 0 or (self._knows_turn and turns > self.turn):
            raise invalid(f"a rewind should keep 0 to {self.turn} turns, got {turns}")
        if turns in self._ends:
            del self.messages[self._ends[turns] :]
        elif self.complete and self._knows_turn:
            raise invalid(f"where turn {turns} ended is not known here: it was not said here, or replaced since")
        else:
            self.complete = False
            self.messages.clear()
        self._ends = {number: end for number, end in self._ends.items() if number <= turns}
        self.turn = turns
        self._knows_turn = True
        self.in_doubt = True

    def close(self) -> Call:
        """The call that closes the session; from here on it counts as closed."""
        self.closed = True
        return close_call(self.id)

    def _replace(self, messages: Sequence[Message]) -> None:
        """Put ``messages`` in place of the transcript; only the turns that both share keep their place."""
        old, self.messages = self.messages, [_copied(message) for message in messages]
        shared = next(
            (at for at, (ours, theirs) in enumerate(zip(old, self.messages, strict=False)) if ours != theirs),
            min(len(old), len(self.messages)),
        )
        self._ends = {number: end for number, end in self._ends.items() if end <= shared}
        self.complete = True

    def _set_expiry(self, text: str | None) -> None:
        self.expires_at = read_expiry(text) if text else None
        self._life_seconds = self.expires_at.timestamp() - self._clock() if self.expires_at else 0.0


def new_conversation(
    *, session_id: str | None, messages: Sequence[Message] | None, system: str | None, ttl: float | None
) -> Conversation:
    """The conversation of a session to be opened; the arguments are those of :meth:`StickyClient.session`."""
    first = [] if system is None else [{"role": "system", "content": system}]
    return Conversation(proposed_id=session_id, messages=[*first, *(messages or ())], ttl_seconds=ttl)


def _copied(message: Message) -> dict[str, Any]:
    """A message that no caller can change; most hold strings alone."""
    return {name: value if isinstance(value, str) else deepcopy(value) for name, value in message.items()}
