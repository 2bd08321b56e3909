"""What a session sends, in which order, when things go wrong; with real containers in tests/recovery."""

from __future__ import annotations

from typing import Any

import pytest
from sagemaker_sticky import InvalidRequest, SessionClosed, StickyClient
from sagemaker_sticky._core.conversation import Conversation
from sagemaker_sticky._core.recovery import Recovery
from sagemaker_sticky.session import Session
from sagemaker_sticky_protocol import ErrorCode, format_time

from tests.client.wire import (
    Reply,
    Wire,
    answer,
    aws_error,
    completed,
    container_error,
    generated,
    generation_events,
    opened,
    sse,
    streamed,
)

NOW = 1_800_000_000.0
CONTEXT = [{"role": "system", "content": "Be brief."}]
CLOSED = answer({}, X_Amzn_SageMaker_Closed_Session_Id="s-1")


@pytest.fixture
def expiring(client: StickyClient, wire: Wire) -> tuple[Session, list[float]]:
    """An open session that has had a turn, and its clock."""
    now = [NOW]
    conversation = Conversation(messages=CONTEXT, ttl_seconds=1800, clock=lambda: now[0])
    expires = f"; Expires={format_time(NOW + 1800)}"
    wire.replies += [opened("s-1", expires=expires), generated("a1")]
    session = Session(client._transport, conversation, Recovery()).open()
    session.invoke("q1")
    wire.requests.clear()
    return session, now


def test_a_session_rolls_over_before_it_expires(expiring: tuple[Session, list[float]], wire: Wire) -> None:
    session, now = expiring
    now[0] += 1775
    wire.replies += [opened("s-2", expires=f"; Expires={format_time(NOW + 3600)}"), CLOSED, generated("a2")]

    assert session.invoke("q2").text == "a2"

    kinds = [(request.session_id, request.body["requestType"]) for request in wire.requests]
    assert kinds == [("NEW_SESSION", "NEW_SESSION"), ("s-1", "CLOSE"), ("s-2", "SESSION")]
    assert [each["content"] for each in wire.requests[0].body["messages"]] == ["Be brief.", "q1", "a1"]
    assert wire.requests[0].body["ttlSeconds"] == 1800
    assert (session.id, session.reopened, session.turn) == ("s-2", 1, 2)


def test_a_roll_over_that_fails_leaves_the_old_session_in_use(
    expiring: tuple[Session, list[float]], wire: Wire
) -> None:
    session, now = expiring
    now[0] += 1775
    wire.replies += [container_error(ErrorCode.TOO_MANY_SESSIONS), generated("a2", turn=2)]

    assert session.invoke("q2").text == "a2"
    assert (session.id, session.reopened, session.turn) == ("s-1", 0, 2)


def test_an_old_session_that_does_not_close_is_no_error(expiring: tuple[Session, list[float]], wire: Wire) -> None:
    session, now = expiring
    now[0] += 1775
    wire.replies += [opened("s-2"), aws_error("InternalFailure", 500, "oh"), streamed(sse(generation_events("a2")))]

    assert list(session.stream("q2")) == ["a2"]
    assert session.reopened == 1


def test_a_session_rewound_to_before_its_reopening_opens_another(
    expiring: tuple[Session, list[float]], wire: Wire
) -> None:
    session, _ = expiring
    wire.replies += [container_error(ErrorCode.SESSION_NOT_FOUND), opened("s-2"), generated("a2")]
    session.invoke("q2")
    wire.requests.clear()

    session.rewind(0)
    wire.replies += [opened("s-3"), CLOSED, completed({"content": "a3"})]
    session.invoke([{"role": "user", "content": "q3"}])

    assert [request.session_id for request in wire.requests] == ["NEW_SESSION", "s-2", "s-3"]
    assert wire.requests[0].body["messages"] == CONTEXT
    assert "rewind" not in wire.requests[2].body
    assert (session.reopened, session.turn) == (2, 1)
    assert [each["content"] for each in session.messages] == ["Be brief.", "q3", "a3"]


def test_a_draining_instance_may_refuse_an_open_twice(client: StickyClient, wire: Wire) -> None:
    wire.replies += [container_error(ErrorCode.DRAINING), container_error(ErrorCode.DRAINING), opened("s-1"), CLOSED]

    with client.session() as session:
        assert session.id == "s-1"


@pytest.mark.parametrize("failure", [container_error(ErrorCode.SESSION_BUSY), aws_error("ValidationError", 400, "x")])
def test_a_refused_turn_is_not_in_doubt(client: StickyClient, wire: Wire, failure: Any) -> None:
    wire.replies += [opened(), generated("a1"), failure, generated("a2", turn=2), CLOSED]

    with client.session(recover=False) as session:
        session.invoke("q1")
        with pytest.raises(Exception, match=r"why|x"):
            session.invoke("q2")
        session.invoke("q2")

    assert "rewind" not in wire.requests[3].body


def test_a_failed_turn_is_in_doubt(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), generated("a1"), container_error(ErrorCode.INTERNAL), generated("a2", turn=2), CLOSED]

    with client.session() as session:
        session.invoke("q1")
        with pytest.raises(Exception, match="why"):
            session.invoke("q2")
        session.invoke("q2")

    assert wire.requests[3].body["rewind"] == 1


def test_an_attached_session_is_used_at_once_and_stays_open(client: StickyClient, wire: Wire) -> None:
    wire.replies += [generated("a5", turn=5), CLOSED]

    with client.attach("s-1") as session:
        assert (session.id, session.turn, session.expires_at) == ("s-1", 0, None)
        session.invoke("q5")
        assert (session.turn, session.expires_at is not None) == (5, True)
        assert [each["content"] for each in session.messages] == ["q5", "a5"]
    assert len(wire.requests) == 1

    session.close()
    assert wire.requests[1].body == {"requestType": "CLOSE"}


def test_an_attached_session_recovers_with_its_messages_only(client: StickyClient, wire: Wire) -> None:
    lost = container_error(ErrorCode.SESSION_NOT_FOUND)
    wire.replies += [lost, lost, opened("s-2"), generated("a2")]

    with pytest.raises(Exception, match="why"):
        client.attach("s-1").invoke("q2")
    session = client.attach("s-1", messages=CONTEXT)
    session.invoke("q2")

    assert wire.requests[2].body["messages"] == CONTEXT
    assert (session.id, session.reopened) == ("s-2", 1)


def test_a_session_opened_without_a_block_closes_by_hand(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), generated("a1"), CLOSED]

    session = client.session().open()
    session.invoke("q1")
    session.close()

    assert wire.requests[-1].body == {"requestType": "CLOSE"}


@pytest.mark.parametrize("ttl", [0, 0.5, -1, float("nan"), True, "60"])
def test_a_life_that_is_none_is_refused(client: StickyClient, ttl: Any) -> None:
    with pytest.raises(InvalidRequest, match="'ttl' should be a number of seconds from 1"):
        client.session(ttl=ttl).open()


@pytest.mark.parametrize(
    "gone",
    [
        container_error(ErrorCode.SESSION_NOT_FOUND),
        container_error(ErrorCode.SESSION_EXPIRED),
        container_error(ErrorCode.DRAINING),
        aws_error("ValidationError", 400, "in words that nobody documented"),
    ],
)
def test_closing_what_is_gone_already_is_no_error(client: StickyClient, wire: Wire, gone: Reply) -> None:
    wire.replies += [opened(), gone]

    with client.session() as session:
        pass

    with pytest.raises(SessionClosed):
        session.invoke("hello")
