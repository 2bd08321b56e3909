"""A session that stands elsewhere than is counted here; with a real container in tests/recovery."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError
from sagemaker_sticky import (
    EndpointFailed,
    InvalidResponse,
    Session,
    SessionConflict,
    StickyClient,
    StreamInterrupted,
)
from sagemaker_sticky_protocol import ErrorCode

from tests.client.wire import (
    Reply,
    Wire,
    answer,
    container_error,
    generated,
    generation_events,
    meta_info,
    opened,
    sse,
    streamed,
)

CLOSED = answer({}, X_Amzn_SageMaker_Closed_Session_Id="s-1")
ELSEWHERE = container_error(ErrorCode.SESSION_CONFLICT)
Say = Callable[[Session, str], str]


def invoked(session: Session, text: str) -> str:
    return session.invoke(text).text


def streamed_to_its_end(session: Session, text: str) -> str:
    return "".join(session.stream(text))


@pytest.fixture(params=[invoked, streamed_to_its_end])
def say(request: pytest.FixtureRequest) -> Say:
    return request.param


def answered(say: Say, text: str, *, turn: int) -> Reply:
    return generated(text, turn=turn) if say is invoked else streamed(sse(generation_events(text, turn=turn)))


def test_a_session_that_stands_elsewhere_goes_on_in_another(client: StickyClient, wire: Wire, say: Say) -> None:
    wire.replies += [opened("s-1"), generated("a1"), generated("a2", turn=2), ELSEWHERE]
    wire.replies += [opened("s-2"), answered(say, "a3", turn=1), generated("a4", turn=2), CLOSED]

    with client.session() as session:
        session.invoke("q1")
        session.invoke("q2")
        assert say(session, "q3") == "a3"
        assert (session.id, session.reopened, session.turn) == ("s-2", 1, 3)
        session.invoke("q4")

    refused, reopened, again, after = wire.requests[3:7]
    assert (refused.body["turn"], again.body["turn"], after.body["turn"]) == (3, 1, 2)
    assert [each["content"] for each in reopened.body["messages"]] == ["q1", "a1", "q2", "a2"]
    assert again.body["inputs"] == "q3"
    assert "rewind" not in again.body


def test_a_turn_that_stands_elsewhere_twice_is_told(client: StickyClient, wire: Wire, say: Say) -> None:
    wire.replies += [opened("s-1"), ELSEWHERE, opened("s-2"), ELSEWHERE, CLOSED]

    with client.session() as session, pytest.raises(SessionConflict):
        say(session, "q1")

    assert len(wire.requests) == 5


@pytest.mark.parametrize("recover", [True, False])
def test_without_a_transcript_or_recovery_standing_elsewhere_is_told(
    client: StickyClient, wire: Wire, say: Say, recover: bool
) -> None:
    wire.replies += [] if recover else [opened()]
    wire.replies += [generated("a5", turn=5 if recover else 1), ELSEWHERE]
    session = client.attach("s-1") if recover else client.session(recover=False).open()
    session.invoke("q5")
    before = session.turn, session.messages

    with pytest.raises(SessionConflict, match=rf"^session s-1 .* after the {session.turn} turns .* \(why\)$") as caught:
        say(session, "q6")

    assert (caught.value.code, caught.value.status) == ("session_conflict", 409)
    assert isinstance(caught.value.cause, ClientError)
    assert (session.turn, session.messages, session.reopened) == (*before, 0)
    wire.replies.append(ELSEWHERE)
    with pytest.raises(SessionConflict):
        say(session, "q6")
    assert "rewind" not in wire.requests[-1].body, "what somebody else said there would be dropped"


def test_a_turn_in_doubt_says_what_counts_and_its_number(client: StickyClient, wire: Wire, say: Say) -> None:
    wire.replies += [opened("s-1"), generated("a1"), container_error(ErrorCode.INTERNAL), ELSEWHERE]
    wire.replies += [opened("s-2"), answered(say, "a2", turn=1), CLOSED]

    with client.session() as session:
        session.invoke("q1")
        with pytest.raises(EndpointFailed):
            session.invoke("q2")
        assert say(session, "q2") == "a2"

    assert (wire.requests[3].body["rewind"], wire.requests[3].body["turn"]) == (1, 2)
    assert [each["content"] for each in wire.requests[4].body["messages"]] == ["q1", "a1"]
    assert "rewind" not in wire.requests[5].body


@pytest.mark.parametrize("number", [1, 3, None])
def test_an_answer_from_another_past_is_never_handed_out(
    client: StickyClient, wire: Wire, say: Say, number: int | None
) -> None:
    wrong = streamed(sse(generation_events("wrong", turn=number)))
    if say is invoked:
        wrong = answer({"generation": {"text": "wrong", "meta_info": meta_info()}})
        wrong = wrong if number is None else generated("wrong", turn=number)
    wire.replies += [opened(), generated("a1"), wrong, generated("a2", turn=2), CLOSED]

    with client.session() as session:
        session.invoke("q1")
        with pytest.raises(InvalidResponse if say is invoked else StreamInterrupted) as caught:
            say(session, "q2")
        assert caught.value.code == "InvalidResponse"
        assert (session.turn, len(session.messages)) == (1, 2)
        session.invoke("q2")

    assert (wire.requests[3].body["rewind"], wire.requests[3].body["turn"]) == (1, 2)


def test_a_stream_from_another_past_is_no_turn(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), streamed(sse(generation_events("wrong", turn=3))), CLOSED]

    with client.session() as session, session.stream("q1", resume=True) as stream:
        with pytest.raises(StreamInterrupted, match="is turn 3 of session s-1, where turn 1 was asked for"):
            list(stream)
        assert (stream.turn, stream.closed) == (None, True)
