"""The sessions of this process: opened, found, taken turns in, closed, expired.

One process owns all of them, so that no two workers disagree about a session. Time comes from an injected clock.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence

from sagemaker_sticky_protocol import (
    MAX_SESSION_ID_LENGTH,
    ErrorCode,
    SessionInfo,
    describe_session_id_rule,
    format_new_session,
    format_time,
    is_session_id,
)

from container.engine import Message
from container.errors import ServerError, invalid, shown
from container.journal import Journal, Opened
from container.transcript import ChatTemplate, Prompt, Transcript

logger = logging.getLogger(__name__)

MAX_PROPOSED_ID_LENGTH = MAX_SESSION_ID_LENGTH - len(format_new_session("", format_time(0)))
REMEMBERED_EXPIRED = 100_000
"""Ids of ended sessions that are still told apart from unknown ones; the oldest is forgotten first."""


class Session:
    """One conversation and who may speak next."""

    __slots__ = ("expires_at", "expires_text", "id", "lock", "rank", "transcript", "waiting")

    def __init__(self, session_id: str, *, expires_at: float, rank: int, transcript: Transcript) -> None:
        self.id = session_id
        self.expires_at = expires_at
        """Unix time, seconds."""
        self.expires_text = format_time(expires_at)
        self.rank = rank
        """The data-parallel copy of the model that holds this session's KV."""
        self.transcript = transcript
        self.lock = asyncio.Lock()
        self.waiting = 0


class Place:
    """An async context manager: one turn's place in its session; see :meth:`SessionTable.turn`."""

    __slots__ = ("_session", "_table")

    def __init__(self, table: SessionTable, session: Session) -> None:
        self._table = table
        self._session = session

    async def __aenter__(self) -> Session:
        """Wait for the turns before this one."""
        session = self._session
        session.waiting += 1
        try:
            await session.lock.acquire()
        finally:
            session.waiting -= 1
        try:
            # It may have ended while this turn waited.
            return self._table.find(session.id)
        except BaseException:
            session.lock.release()
            raise

    async def __aexit__(self, *_problem: object) -> None:
        """Let the next turn begin."""
        self._session.lock.release()


class SessionTable:
    """Every open session, by id."""

    def __init__(
        self,
        template: ChatTemplate,
        *,
        ttl_seconds: float,
        max_sessions: int,
        queue: int,
        ranks: int,
        served_by: str,
        clock: Callable[[], float],
        journal: Journal | None,
        count: Callable[[str], None],
    ) -> None:
        self._template = template
        self._ttl_seconds = ttl_seconds
        self._max_sessions = max_sessions
        self._queue = queue
        self._served_by = served_by
        self._clock = clock
        self._journal = journal
        self._count = count
        """Told of every session that is opened, closed, expired, restored or lost."""
        self._open: dict[str, Session] = {}
        self._expired: dict[str, float] = {}
        self._on_rank = [0] * ranks

    def __len__(self) -> int:
        """Open sessions."""
        return len(self._open)

    def open(self, proposed_id: str | None, context: Sequence[Message], *, ttl_seconds: float | None = None) -> Session:
        """Make a session, under ``proposed_id`` where given.

        Raises:
            ServerError: the id breaks the pattern (``invalid_request``) or is in use (``session_conflict``), or there
                are too many sessions.
        """
        if proposed_id is not None and not is_session_id(proposed_id):
            raise invalid(f"'extSessionID' should be {describe_session_id_rule()}, got {shown(proposed_id)}")
        if proposed_id is not None and len(proposed_id) > MAX_PROPOSED_ID_LENGTH:
            allowed = f"at most {MAX_PROPOSED_ID_LENGTH} characters, so that its expiry fits the header beside it"
            raise invalid(f"'extSessionID' should be {allowed}, got {len(proposed_id)}")
        session_id = proposed_id or secrets.token_hex(16)
        if proposed_id is not None and self._get(session_id) is not None:
            raise ServerError(ErrorCode.SESSION_CONFLICT, f"session {session_id!r} is open already; close it first")
        if len(self._open) >= self._max_sessions:
            raise ServerError(
                ErrorCode.TOO_MANY_SESSIONS, f"{len(self._open)} sessions are open, at most {self._max_sessions} may be"
            )
        session = Session(
            session_id,
            expires_at=self._clock() + min(ttl_seconds or self._ttl_seconds, self._ttl_seconds),
            rank=self._on_rank.index(min(self._on_rank)),
            transcript=Transcript(self._template, context),
        )
        opened = Opened(id=session.id, expires_at=session.expires_at, rank=session.rank, context=context)
        self._write(lambda journal: journal.opened(opened))
        self._expired.pop(session_id, None)
        self._add(session)
        self._count("opened")
        return session

    def find(self, session_id: str) -> Session:
        """The open session of that id.

        Raises:
            ServerError: ``session_expired`` or ``session_not_found``.
        """
        session = self._get(session_id)
        if session is not None and not self._is_over(session):
            return session
        over = session.expires_at if session is not None else self._expired.get(session_id)
        if over is not None:
            raise ServerError(ErrorCode.SESSION_EXPIRED, f"session {session_id!r} expired at {format_time(over)}")
        raise ServerError(ErrorCode.SESSION_NOT_FOUND, f"session {session_id!r} is not open here")

    def commit(self, session: Session, prompt: Prompt, output_ids: Sequence[int], answer: Message) -> None:
        """Make a turn part of the session's conversation, on disk before anyone is told."""
        change = session.transcript.commit(prompt, output_ids, answer)
        self._write(lambda journal: journal.committed(session.id, change))

    def turn(self, session_id: str) -> Place:
        """A place in the queue of a session: waits for the turns before it, and holds the session until it ends.

        Raises:
            ServerError: as :meth:`find`; ``session_busy`` where too many turns wait already.
        """
        session = self.find(session_id)
        if session.lock.locked() and session.waiting >= self._queue:
            raise ServerError(
                ErrorCode.SESSION_BUSY,
                f"{session.waiting} turns of session {session_id!r} wait already, at most {self._queue} may",
            )
        return Place(self, session)

    async def close(self, session_id: str) -> Session:
        """End a session, after the turn that runs in it.

        Raises:
            ServerError: as :meth:`find`.
        """
        session = self.find(session_id)
        async with session.lock:
            self.find(session_id)
            self._remove(session)
        self._count("closed")
        return session

    def reap(self, *only: str | None) -> list[str]:
        """Forget the sessions (of the ids in ``only``, where given) whose time is over and in which no turn runs.

        Returns:
            Their ids.
        """
        asked = [self._open[each] for each in only if each in self._open] if only else self._open.values()
        over = [each for each in asked if self._is_over(each) and not each.lock.locked()]
        for session in over:
            self._remove(session)
            self._expired[session.id] = session.expires_at
            self._count("expired")
        while len(self._expired) > REMEMBERED_EXPIRED:
            del self._expired[next(iter(self._expired))]
        return [each.id for each in over]

    def info(self, session: Session) -> SessionInfo:
        """What answers say of a session."""
        return SessionInfo(
            id=session.id,
            expires_at=session.expires_text,
            turn=session.transcript.turns,
            context_tokens=len(session.transcript.ids),
            served_by=self._served_by,
        )

    def _is_over(self, session: Session) -> bool:
        return self._clock() >= session.expires_at

    def _get(self, session_id: str) -> Session | None:
        """The session of that id, from memory or, after a restart of this process, from the journal."""
        session = self._open.get(session_id)
        if session is not None or self._journal is None:
            return session
        try:
            known = self._journal.load(session_id)
        except (ValueError, KeyError, TypeError):
            # Its checksum holds, so another version of this software wrote it.
            logger.warning("the journal of session %s is of another kind and is dropped", session_id)
            self._journal.ended(session_id)
            self._count("lost")
            return None
        if known is None:
            return None
        opened, turns = known
        transcript = Transcript(self._template, opened.context)
        for turn in turns:
            transcript.recommit(turn)
        session = Session(
            session_id, expires_at=opened.expires_at, rank=opened.rank % len(self._on_rank), transcript=transcript
        )
        self._add(session)
        self._count("restored")
        return session

    def _add(self, session: Session) -> None:
        self._open[session.id] = session
        self._on_rank[session.rank] += 1

    def _remove(self, session: Session) -> None:
        del self._open[session.id]
        self._on_rank[session.rank] -= 1
        self._write(lambda journal: journal.ended(session.id))

    def _write(self, write: Callable[[Journal], None]) -> None:
        """Write to the journal. A disk that is full or gone ends the journal, and no conversation."""
        if self._journal is None:
            return
        try:
            write(self._journal)
        except OSError as problem:
            logger.error("the journal ends here, so sessions will not survive a restart: %s", problem)
            self._journal = None
