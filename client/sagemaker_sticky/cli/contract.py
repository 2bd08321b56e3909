"""What an endpoint must do to be one of ours: the checks of ``sticky smoke``, which the contract tests run too.

Each takes a client, makes the sessions that it needs, and answers a line to show; a failure is an exception.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone

from sagemaker_sticky_protocol import is_session_id

from .._core.calls import close_call
from .._core.recovery import is_gone
from ..client import StickyClient
from ..errors import StickyError
from ..session import Session
from .checks import CheckFailed, CheckResult

FIRST_WORDS = (
    "I am checking that this conversation is remembered from one turn to the next. "
    "Keep in mind that the code word is 'periwinkle'. Answer with one short sentence."
)
NEXT_WORDS = "Which code word did I give?"
MAX_NEW_TOKENS = 32
"""Enough to see an answer; a check judges how a turn is served, not what the model says."""


Check = Callable[[StickyClient], str]


def session_opens(client: StickyClient) -> str:
    """A session opens under a valid id, with an expiry ahead."""
    with client.session() as session:
        _expect(is_session_id(session.id), f"the id {session.id!r} is not one that SageMaker takes")
        _expect(session.turn == 0, f"a new session counts {session.turn} turns")
        if session.expires_at is None:
            raise CheckFailed("the endpoint did not say when the session expires")
        seconds_left = (session.expires_at - datetime.now(timezone.utc)).total_seconds()
        _expect(seconds_left > 0, f"the session expired before it was opened, at {session.expires_at.isoformat()}")
        return f"expires in {seconds_left / 60:.0f} min, served by {session.served_by}"


def session_remembers(client: StickyClient) -> str:
    """A second turn that says only what is new is answered with the first in context, out of the KV cache."""
    with client.session() as session:
        first = session.invoke(FIRST_WORDS, max_new_tokens=MAX_NEW_TOKENS)
        second = session.invoke(NEXT_WORDS, max_new_tokens=MAX_NEW_TOKENS)
        earlier = first.usage.prompt_tokens + first.usage.completion_tokens
        prompt, cached = second.usage.prompt_tokens, second.usage.cached_tokens
        _expect(prompt > earlier, f"turn 2 was given {prompt} tokens, though turn 1 alone had {earlier}")
        _expect(cached > 0, f"none of the {earlier} tokens of turn 1 were found in the cache")
        return f"turn 2 found {cached} of {earlier} earlier tokens in the cache"


def session_streams(client: StickyClient) -> str:
    """A turn arrives in pieces that end with usage and a finish reason, and counts as a turn."""
    with client.session() as session:
        with session.stream(FIRST_WORDS, max_new_tokens=MAX_NEW_TOKENS) as stream:
            pieces = list(stream)
        _expect(bool(pieces), "the stream held no text")
        _expect(stream.finish_reason is not None, "the stream gave no finish reason")
        return f"{len(pieces)} pieces, {session.usage.completion_tokens} tokens, finished by {stream.finish_reason}"


def session_recovers(client: StickyClient) -> str:
    """A conversation whose session is gone goes on in another one, with what was said before."""
    with client.session() as session:
        first = session.invoke(FIRST_WORDS, max_new_tokens=MAX_NEW_TOKENS)
        _close_behind_its_back(client, session)
        second = session.invoke(NEXT_WORDS, max_new_tokens=MAX_NEW_TOKENS)
        earlier, prompt = first.usage.prompt_tokens, second.usage.prompt_tokens
        _expect(session.reopened == 1, f"the session was reopened {session.reopened} times after it was closed")
        _expect(prompt > earlier, f"turn 2 was given {prompt} tokens, though turn 1 alone had {earlier}")
        return f"closed elsewhere and reopened: turn 2 was given {prompt} tokens, turn 1 had {earlier}"


def session_closes(client: StickyClient) -> str:
    """A close is confirmed, and no turn is served afterwards."""
    with client.session(recover=False) as session:
        _close_behind_its_back(client, session)
        try:
            session.invoke(NEXT_WORDS, max_new_tokens=1)
        except StickyError as error:
            if is_gone(error):
                return f"a turn after the close was refused: {error.code}"
            raise
    raise CheckFailed("a turn after the close was answered")


CHECKS: Sequence[Check] = (session_opens, session_remembers, session_streams, session_recovers, session_closes)


def _close_behind_its_back(client: StickyClient, session: Session) -> None:
    """Close a session so that it does not know, and still sends its next turn."""
    closed = client._transport.send(close_call(session.id)).closed_session
    _expect(closed == session.id, f"the close of {session.id} was answered with {closed!r}")


def run_check(check: Check, client: StickyClient) -> CheckResult:
    """Run one check; whatever the endpoint does wrong is in the result."""
    started = time.monotonic()
    try:
        passed, detail = True, check(client)
    except (CheckFailed, StickyError) as error:
        passed, detail = False, f"{type(error).__name__}: {error}"
    return CheckResult(check.__name__, passed, detail, time.monotonic() - started)


def run_checks(client: StickyClient) -> Iterator[CheckResult]:
    """Run every check, one after the other."""
    return (run_check(check, client) for check in CHECKS)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CheckFailed(otherwise)
