"""What is sent, in which order: the steps of opening a session, of a turn in it, and of closing it.

:mod:`.recovery` decides when a turn is said again in another session.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..errors import Draining, SessionConflict, StickyError
from .answers import Turn, read_turn
from .calls import Call, Content, close_call
from .conversation import Conversation
from .recovery import REFUSALS, Recovery, is_lost, needs_another_session
from .steps import Steps

OPEN_ATTEMPTS = 3
"""How often a draining instance may refuse an open, which changes nothing there, before that is the answer."""

logger = logging.getLogger(__name__)


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
        if not (recovery.enabled and conversation.complete and needs_another_session(error)):
            raise
        logger.info("session %s cannot go on (%s), opening another", conversation.id, error.code)
    yield from _reopening(conversation)
    return (yield from _sent(conversation, conversation.say(content, parameters, **how)))


def closing(conversation: Conversation) -> Steps[None]:
    """Close the session; one that is gone, or goes with its instance, is closed."""
    if not conversation.is_open:
        return
    try:
        yield conversation.close()
    except StickyError as error:
        if not is_lost(error):
            raise


def _sent(conversation: Conversation, call: Call) -> Steps[Any]:
    """The answer of a turn, which is in doubt until it is taken in: the caller may be cut off at any moment."""
    before, conversation.in_doubt = conversation.in_doubt, True
    try:
        return (yield call)
    except REFUSALS as error:
        conversation.in_doubt = before
        if isinstance(error, SessionConflict):
            raise _elsewhere(conversation, error) from error.cause
        raise


def _elsewhere(conversation: Conversation, error: SessionConflict) -> SessionConflict:
    """The error in this side's words: whoever said the turn gave it no number."""
    return SessionConflict(
        f"session {conversation.id} does not stand there after the {conversation.turn} turns that count here, and "
        f"nothing was answered; attach it again to go on from where it stands ({error})",
        code=error.code,
        status=error.status,
        request_id=error.request_id,
    )


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
