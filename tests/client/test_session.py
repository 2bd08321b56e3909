from __future__ import annotations

import logging
from datetime import datetime, timezone

import pytest
from sagemaker_sticky import (
    EndpointFailed,
    InvalidRequest,
    InvalidResponse,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionLost,
    StickyClient,
    StreamInterrupted,
    Unavailable,
    Usage,
)
from sagemaker_sticky_protocol import ErrorCode

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

CLOSED = answer({}, X_Amzn_SageMaker_Closed_Session_Id="s-1")


def test_a_session_opens_speaks_and_closes(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), generated("hi Ada"), generated("Ada", turn=2, prompt=20, cached=8, completion=1), CLOSED]

    with client.session() as session:
        assert (session.id, session.turn, session.served_by) == ("s-1", 0, "i-1")
        assert session.expires_at == datetime(2100, 1, 1, tzinfo=timezone.utc)
        first = session.invoke("I am Ada", temperature=0)
        second = session.invoke("who am I?")

    assert (first.text, second.text) == ("hi Ada", "Ada")
    assert [(request.session_id, request.body) for request in wire.requests] == [
        ("NEW_SESSION", {"requestType": "NEW_SESSION"}),
        ("s-1", {"requestType": "SESSION", "inputs": "I am Ada", "parameters": {"temperature": 0}, "turn": 1}),
        ("s-1", {"requestType": "SESSION", "inputs": "who am I?", "turn": 2}),
        ("s-1", {"requestType": "CLOSE"}),
    ]
    assert (session.turn, session.usage) == (2, Usage(25, 10, 4))


def test_a_session_opens_with_an_id_and_a_context(client: StickyClient, wire: Wire) -> None:
    said = {"role": "user", "content": "hello"}
    wire.replies += [opened("a-1"), CLOSED]

    with client.session(session_id="a-1", system="Be brief.", messages=[said]) as session:
        assert session.messages == [{"role": "system", "content": "Be brief."}, said]

    assert wire.requests[0].body == {
        "requestType": "NEW_SESSION",
        "extSessionID": "a-1",
        "messages": [{"role": "system", "content": "Be brief."}, said],
    }


def test_the_transcript_holds_both_sides(client: StickyClient, wire: Wire) -> None:
    new = [{"role": "tool", "tool_call_id": "c", "content": "4"}, {"role": "user", "content": "and?"}]
    reply = {"content": "5", "reasoning_content": "4 + 1"}
    bye = streamed(sse(generation_events("by", "e", turn=3)))
    wire.replies += [opened(), generated("hi"), completed(reply, turn=2), bye, CLOSED]

    with client.session(system="Be brief.") as session:
        session.invoke("hello")
        session.invoke(new)
        list(session.stream("bye"))

        assert session.messages == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            *new,
            {"role": "assistant", **reply},
            {"role": "user", "content": "bye"},
            {"role": "assistant", "content": "bye"},
        ]


def test_the_transcript_is_the_sessions_own(client: StickyClient, wire: Wire) -> None:
    part = {"type": "text", "text": "hello"}
    message = {"role": "user", "content": [part]}
    wire.replies += [opened(), completed({"content": "hi"}), CLOSED]

    with client.session() as session:
        session.invoke([message])
        part["text"] = "changed"
        session.messages.clear()

        assert session.messages[0] == {"role": "user", "content": [{"type": "text", "text": "hello"}]}


def test_a_full_history_replaces_the_transcript(client: StickyClient, wire: Wire) -> None:
    whole = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    wire.replies += [opened(), generated("hi"), completed({"content": "d"}), CLOSED]

    with client.session() as session:
        session.invoke("hello")
        session.invoke(whole, history="full")

        assert session.messages == [*whole, {"role": "assistant", "content": "d"}]
    assert wire.requests[2].body["history"] == "full"


def test_a_streamed_turn_counts_when_it_was_read_to_its_end(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), streamed(sse(generation_events("a", "b"))), CLOSED]

    with client.session() as session:
        stream = session.stream("hello", max_new_tokens=2)
        assert next(stream) == "a"
        assert (session.turn, session.messages) == (0, [])
        assert list(stream) == ["b"]
        assert (session.turn, session.usage) == (1, Usage(5, 2, 3))

    assert wire.requests[1].streams
    assert wire.requests[1].body == {
        "requestType": "SESSION",
        "inputs": "hello",
        "parameters": {"max_new_tokens": 2},
        "turn": 1,
        "stream": True,
    }


def test_a_stream_that_breaks_leaves_the_session_as_it_was(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), streamed(sse(generation_events("a"), done=False)), generated("b"), CLOSED]

    with client.session() as session:
        with pytest.raises(StreamInterrupted):
            list(session.stream("hello"))
        assert (session.turn, session.messages, session.usage) == (0, [], Usage())
        assert session.invoke("again").text == "b"


def test_a_turn_over_an_open_stream_is_refused_here(client: StickyClient, wire: Wire) -> None:
    held = streamed(sse([{"generation": {"text": "a"}}], done=False), ending="held")
    wire.replies += [opened(), held, generated("b"), CLOSED]

    with client.session() as session:
        stream = session.stream("hello")
        with pytest.raises(SessionBusy, match="still open") as caught:
            session.invoke("and?")
        with pytest.raises(SessionBusy):
            session.stream("and?")
        assert caught.value.code == "session_busy"
        stream.close()
        assert session.invoke("and?").text == "b"


def test_leaving_the_session_ends_its_open_stream(client: StickyClient, wire: Wire) -> None:
    held = streamed(sse([{"generation": {"text": "a"}}], done=False), ending="held")
    wire.replies += [opened(), held, CLOSED]

    with client.session() as session:
        stream = session.stream("hello")

    assert wire.hung_up.wait(10)
    assert stream.closed
    assert wire.requests[-1].body == {"requestType": "CLOSE"}


def test_a_session_closes_after_an_error_of_the_block(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), CLOSED]

    with pytest.raises(ZeroDivisionError), client.session():
        raise ZeroDivisionError

    assert wire.requests[-1].body == {"requestType": "CLOSE"}


def test_a_failing_close_does_not_hide_the_error_of_the_block(
    client: StickyClient, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.replies += [opened(), aws_error("InternalFailure", 500, "broke")]

    with caplog.at_level(logging.WARNING), pytest.raises(ZeroDivisionError), client.session():
        raise ZeroDivisionError

    assert "session s-1 could not be closed: broke" in caplog.text


def test_a_failing_close_is_an_error_of_its_own(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), aws_error("InternalFailure", 500, "broke")]

    with pytest.raises(EndpointFailed), client.session():
        pass


def test_a_session_closes_once(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), CLOSED]

    with client.session() as session:
        session.close()
        session.close()

    assert len(wire.requests) == 2


def test_nothing_is_sent_outside_the_block(client: StickyClient, wire: Wire) -> None:
    session = client.session()
    with pytest.raises(SessionClosed, match="with"):
        session.invoke("hello")
    with pytest.raises(SessionClosed):
        _ = session.id
    assert (session.turn, session.served_by, session.expires_at) == (0, None, None)
    session.close()

    wire.replies += [opened(), CLOSED]
    with session:
        pass
    assert session.id == "s-1"
    with pytest.raises(SessionClosed, match="is closed"):
        session.stream("hello")
    with pytest.raises(SessionClosed, match="make a new one"), session:
        pass
    assert len(wire.requests) == 2


@pytest.mark.parametrize("code", [ErrorCode.SESSION_NOT_FOUND, ErrorCode.SESSION_EXPIRED])
def test_a_lost_session_is_told(client: StickyClient, wire: Wire, code: ErrorCode) -> None:
    wire.replies += [opened(), container_error(code), container_error(code)]

    with pytest.raises(SessionLost) as caught, client.session(recover=False) as session:
        session.invoke("hello")

    assert caught.value.code == code.value
    assert session.messages == []


def test_a_wrong_turn_is_refused_before_it_is_sent(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), CLOSED]

    with client.session() as session:
        with pytest.raises(InvalidRequest):
            session.invoke("")
        with pytest.raises(InvalidRequest):
            session.stream("x", stream=False)

    assert len(wire.requests) == 2


def test_an_open_that_fails_leaves_nothing_to_close(client: StickyClient, wire: Wire) -> None:
    wire.replies += [container_error(ErrorCode.SESSION_CONFLICT)]

    with pytest.raises(SessionConflict), client.session(session_id="a"):
        pass

    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "reply", [answer({"session": None}), opened("not_valid"), opened("s-1", expires="; Expires=soon"), answer([])]
)
def test_an_endpoint_that_knows_no_sessions_is_told(client: StickyClient, wire: Wire, reply: Reply) -> None:
    wire.replies.append(reply)

    with pytest.raises(InvalidResponse), client.session():
        pass


def test_a_session_without_expiry_in_its_header_has_the_bodys(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(expires=""), CLOSED]

    with client.session() as session:
        assert session.expires_at == datetime(2100, 1, 1, tzinfo=timezone.utc)


def test_an_unavailable_endpoint_is_asked_once(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), aws_error("ModelNotReadyException", 429, "loading"), CLOSED]

    with client.session() as session, pytest.raises(Unavailable):
        session.invoke("hello")

    assert len(wire.requests) == 3
