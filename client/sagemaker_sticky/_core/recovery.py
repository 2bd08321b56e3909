"""Recovery's decisions: what an error says of the session and of the turn, and so what may be said again.

A turn whose session is unknown, expired or closed, whose instance is gone or going, which the router refuses with 400,
or whose session stands at another turn there than here, is said again, once, in a new session that was given the
transcript. Nothing else is repeated: a turn that may have been answered is not asked again, but the next one tells the
endpoint how many turns count.
"""

from __future__ import annotations

from typing import NamedTuple

from sagemaker_sticky_protocol import ErrorCode

from ..errors import (
    AccessDenied,
    Draining,
    InvalidRequest,
    SessionBusy,
    SessionConflict,
    SessionLost,
    StickyError,
    StreamInterrupted,
    Unavailable,
)

ROLL_OVER_SECONDS = 30.0
"""A session with less time left than this is rolled over before its next turn."""
REFUSALS = (InvalidRequest, SessionBusy, SessionConflict, Unavailable, AccessDenied)
"""What says for certain that a turn did not happen."""
_LASTING_BREAKS = {code.value for code in ErrorCode} - {
    ErrorCode.SESSION_NOT_FOUND.value,
    ErrorCode.SESSION_EXPIRED.value,
    ErrorCode.DRAINING.value,
} | {"ModelInvocationTimeExceeded", "InvalidResponse"}
"""Codes of a broken stream that asking again would meet again."""


class Recovery(NamedTuple):
    """Whether a session recovers, and how early it leaves a session that will expire."""

    enabled: bool = True
    roll_over_seconds: float = ROLL_OVER_SECONDS


def is_gone(error: StickyError) -> bool:
    """Whether an error says that the endpoint has no such session.

    SageMaker's router answers 400 for a session that it does not know; its words for that are not documented.
    """
    return isinstance(error, SessionLost) or error.code == "ValidationError"


def is_lost(error: StickyError) -> bool:
    """Whether a session is gone, or goes with its instance."""
    return is_gone(error) or isinstance(error, Draining)


def needs_another_session(error: StickyError) -> bool:
    """Whether a turn cannot be said in its session, but in a new one with the transcript."""
    return is_lost(error) or isinstance(error, SessionConflict)


def may_ask_again(error: StreamInterrupted) -> bool:
    """Whether a broken stream may do better when it is asked for again: it is the way there that broke."""
    return error.code not in _LASTING_BREAKS
