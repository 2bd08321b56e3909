"""The sessions of this process: opened, found, taken turns in, closed, expired.

One process owns all of them, so that no two workers disagree about a session. Time comes from an injected clock.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from sagemaker_sticky_protocol import ErrorCode, SessionInfo, describe_session_id_rule, format_time, is_session_id

from container.engine import Message
from container.errors import ServerError, invalid, shown
from container.transcript import ChatTemplate, Transcript

REMEMBERED_EXPIRED = 100_000
"""Ids of ended sessions that are still told apart from unknown ones; the oldest is forgotten first."""


class Session:
    """One conversation and who may speak next."""

    __slots__ = ("expires_at", "id", "lock", "transcript", "waiting")

    def __init__(self, session_id: str, *, expires_at: float, transcript: Transcript) -> None:
        self.id = session_id
        self.expires_at = expires_at
        """Unix time, seconds."""
        self.transcript = transcript
        self.lock = asyncio.Lock()
        self.waiting = 0


class SessionTable:
    """Every open session, by id."""

    def __init__(
        self,
        template: ChatTemplate,
        *,
        ttl_seconds: float,
        max_sessions: int,
        queue: int,
        served_by: str,
        clock: Callable[[], float],
    ) -> None:
        self._template = template
        self._ttl_seconds = ttl_seconds
        self._max_sessions = max_sessions
        self._queue = queue
        self._served_by = served_by
        self._clock = clock
        self._open: dict[str, Session] = {}
        self._expired: dict[str, float] = {}

    def __len__(self) -> int:
        """Open sessions."""
        return len(self._open)

    def open(self, proposed_id: str | None, context: Sequence[Message]) -> Session:
        """Make a session, under ``proposed_id`` where given.

        Raises:
            ServerError: the id breaks the pattern (``invalid_request``) or is in use (``session_conflict``), or there
                are too many sessions.
        """
        if proposed_id is not None and not is_session_id(proposed_id):
            raise invalid(f"'extSessionID' should be {describe_session_id_rule()}, got {shown(proposed_id)}")
        session_id = proposed_id or secrets.token_hex(16)
        if session_id in self._open:
            raise ServerError(ErrorCode.SESSION_CONFLICT, f"session {session_id!r} is open already; close it first")
        if len(self._open) >= self._max_sessions:
            raise ServerError(
                ErrorCode.TOO_MANY_SESSIONS, f"{len(self._open)} sessions are open, at most {self._max_sessions} may be"
            )
        transcript = Transcript(self._template, context)
        session = Session(session_id, expires_at=self._clock() + self._ttl_seconds, transcript=transcript)
        self._open[session_id] = session
        self._expired.pop(session_id, None)
        return session

    def find(self, session_id: str) -> Session:
        """The open session of that id.

        Raises:
            ServerError: ``session_expired`` or ``session_not_found``.
        """
        session = self._open.get(session_id)
        if session is not None and not self._is_over(session):
            return session
        over = session.expires_at if session is not None else self._expired.get(session_id)
        if over is not None:
            raise ServerError(ErrorCode.SESSION_EXPIRED, f"session {session_id!r} expired at {format_time(over)}")
        raise ServerError(ErrorCode.SESSION_NOT_FOUND, f"session {session_id!r} is not open here")

    @asynccontextmanager
    async def turn(self, session_id: str) -> AsyncIterator[Session]:
        """Wait for the turns before this one, then hold the session until the block ends.

        Raises:
            ServerError: as :meth:`find`; ``session_busy`` where too many turns wait already.
        """
        session = self.find(session_id)
        if session.lock.locked() and session.waiting >= self._queue:
            raise ServerError(
                ErrorCode.SESSION_BUSY,
                f"{session.waiting} turns of session {session_id!r} wait already, at most {self._queue} may",
            )
        session.waiting += 1
        try:
            await session.lock.acquire()
        finally:
            session.waiting -= 1
        try:
            # It may have ended while this turn waited.
            yield self.find(session_id)
        finally:
            session.lock.release()

    async def close(self, session_id: str) -> Session:
        """End a session, after the turn that runs in it.

        Raises:
            ServerError: as :meth:`find`.
        """
        session = self.find(session_id)
        async with session.lock:
            self.find(session_id)
            del self._open[session_id]
        return session

    def reap(self) -> list[str]:
        """Forget the sessions whose time is over and in which no turn runs; gives their ids."""
        ids = [each.id for each in self._open.values() if self._is_over(each) and not each.lock.locked()]
        for session_id in ids:
            self._expired[session_id] = self._open.pop(session_id).expires_at
        while len(self._expired) > REMEMBERED_EXPIRED:
            del self._expired[next(iter(self._expired))]
        return ids

    def info(self, session: Session) -> SessionInfo:
        """What answers say of a session."""
        return SessionInfo(
            id=session.id,
            expires_at=format_time(session.expires_at),
            turn=session.transcript.turns,
            context_tokens=len(session.transcript.ids),
            served_by=self._served_by,
        )

    def _is_over(self, session: Session) -> bool:
        return self._clock() >= session.expires_at
