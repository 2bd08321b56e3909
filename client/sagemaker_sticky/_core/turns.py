"""How a session outlives its sessions: what is sent, in which order, when the endpoint has lost one.

A turn whose session is unknown, expired or closed, whose instance is gone or going, or which the router refuses with
400, is said again, once, in a new session that was given the transcript. Nothing else is repeated: a turn that may have
been answered is not asked again, but the next one tells the endpoint how many turns count.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from sagemaker_sticky_protocol import ErrorCode

from ..errors import AccessDenied, Draining, InvalidRequest, SessionBusy, StickyError, StreamInterrupted, Unavailable
from .answers import Turn, read_turn
from .calls import Call, Content, close_call
from .conversation import Conversation, is_gone
from .steps import Steps

ROLL_OVER_SECONDS = 30.0
"""A session with less time left than this is rolled over before its next turn."""
OPEN_ATTEMPTS = 3
"""How often a draining instance may refuse an open, which changes nothing there, before that is the answer."""
_REFUSED = (InvalidRequest, SessionBusy, Unavailable, AccessDenied)
"""What says for certain that a turn did not happen."""
_LASTING_BREAKS = {code.value for code in ErrorCode} - {
    ErrorCode.SESSION_NOT_FOUND.value,
    ErrorCode.SESSION_EXPIRED.value,
    ErrorCode.DRAINING.value,
} | {"ModelInvocationTimeExceeded", "InvalidResponse"}
"""Codes of a broken stream that asking again would meet again."""

logger = logging.getLogger(__name__)


class Recovery(NamedTuple):
    """Whether a session recovers, and how early it leaves a session that will expire."""

    enabled: bool = True
    roll_over_seconds: float = ROLL_OVER_SECONDS


def opening(conversation: Conversation) -> Steps[None]:
    """Open the session."""
    answer = yield from _past_draining(conversation.open())
    conversation.opened(answer.new_session, answer.json())


def invoking(
    conversation: Conversation, recovery: Recovery, content: Content, parameters: Mapping[str, Any]
) -> Steps[Turn]:
    """Say something and take the whole answer in."""
    answer = yield from saying(conversation, recovery, content, parameters)
    turn = read_turn(answer.json())
    conversation.answered(content, parameters, turn)
    return turn


def saying(
    conversation: Conversation,
    recovery: Recovery,
    content: Content,
    parameters: Mapping[str, Any],
    **how: Any,
) -> Steps[Any]:
    """Say something, in another session where this one is lost; gives the Answer, or the StreamAnswer.

    ``how`` is that of :meth:`Conversation.say`.
    """
    call = conversation.say(content, parameters, **how)
    if conversation.must_reopen:
        yield from _moving(conversation)
        call = conversation.say(content, parameters, **how)
    elif recovery.enabled and conversation.complete and conversation.is_near_expiry(recovery.roll_over_seconds):
        yield from _rolling_over(conversation)
        call = conversation.say(content, parameters, **how)
    try:
        return (yield from _sent(conversation, call))
    except StickyError as error:
        if not (recovery.enabled and conversation.complete and _is_lost(error)):
            raise
        logger.info("session %s is lost (%s), opening another", conversation.id, error.code)
    yield from _reopening(conversation)
    return (yield from _sent(conversation, conversation.say(content, parameters, **how)))


def closing(conversation: Conversation) -> Steps[None]:
    """Close the session; one that is gone, or goes with its instance, is closed."""
    if not conversation.is_open:
        return
    try:
        yield conversation.close()
    except StickyError as error:
        if not _is_lost(error):
            raise


def may_ask_again(error: StreamInterrupted) -> bool:
    """Whether a broken stream may do better when it is asked for again: it is the way there that broke."""
    return error.code not in _LASTING_BREAKS


def _sent(conversation: Conversation, call: Call) -> Steps[Any]:
    """The answer of a turn, which is in doubt until it is taken in: the caller may be cut off at any moment."""
    before, conversation.in_doubt = conversation.in_doubt, True
    try:
        return (yield call)
    except _REFUSED:
        conversation.in_doubt = before
        raise


def _reopening(conversation: Conversation) -> Steps[None]:
    answer = yield from _past_draining(conversation.open_again())
    conversation.opened(answer.new_session, answer.json())


def _rolling_over(conversation: Conversation) -> Steps[None]:
    """Go over to a new session ahead of expiry; where that fails, the old one still serves."""
    try:
        yield from _moving(conversation)
    except StickyError as error:
        logger.warning("session %s expires soon and could not be rolled over: %s", conversation.id, error)


def _moving(conversation: Conversation) -> Steps[None]:
    """Go over to a new session and close the one left behind."""
    left_behind = conversation.id
    yield from _reopening(conversation)
    try:
        yield close_call(left_behind)
    except StickyError as error:
        logger.info("session %s was left to expire: %s", left_behind, error.code)


def _past_draining(call: Call) -> Steps[Any]:
    for _ in range(OPEN_ATTEMPTS - 1):
        try:
            return (yield call)
        except Draining:
            continue
    return (yield call)


def _is_lost(error: StickyError) -> bool:
    return is_gone(error) or isinstance(error, Draining)
