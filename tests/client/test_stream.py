from __future__ import annotations

from typing import Any

import pytest
from sagemaker_sticky import StickyClient, StreamInterrupted, Usage

from tests.client.wire import (
    REQUEST_ID,
    Reply,
    Wire,
    aws_error,
    generation_events,
    openai_usage,
    payload_part,
    session,
    sse,
    stream_exception,
    streamed,
)

GENERATION = sse(generation_events("Zoë ", "says ", "„grüß 👋“", ""))
TEXT = "Zoë says „grüß 👋“"


def completion(delta: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None, **rest}]}


COMPLETION = sse(
    [
        completion({"role": "assistant", "content": ""}),
        completion({"content": "Zoë says "}),
        completion({"content": "„grüß 👋“"}),
        completion({}, finish_reason="stop"),
        {"choices": [], "usage": openai_usage(), "session": session()},
    ]
)


def test_a_stream_gives_pieces_and_then_the_turn(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(streamed(GENERATION))

    stream = client.stream("hello")
    first = next(stream)

    assert (first, stream.text, stream.usage, stream.finish_reason, stream.turn) == ("Zoë ", "Zoë ", None, None, None)
    assert list(stream) == ["says ", "„grüß 👋“"]
    assert (stream.text, stream.usage, stream.finish_reason) == (TEXT, Usage(5, 2, 3), "stop")
    assert stream.session is not None
    assert stream.session.turn == 1
    assert stream.turn is not None
    assert stream.turn.message == {"role": "assistant", "content": TEXT}
    assert stream.closed


def test_a_stream_read_to_its_end_gives_its_connection_back(client: StickyClient, wire: Wire, runtime: Any) -> None:
    runtime.close()  # drops what earlier tests left in its pool
    wire.replies += [streamed(GENERATION), streamed(COMPLETION)]

    list(client.stream("hello"))
    list(client.stream([{"role": "user", "content": "hello"}]))

    assert wire.connections == 1


def test_leaving_the_block_early_hangs_up(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(streamed(sse([{"generation": {"text": "one"}}], done=False), ending="held"))

    with client.stream("hello") as stream:
        assert next(stream) == "one"

    assert wire.hung_up.wait(10)
    assert list(stream) == []
    assert (stream.closed, stream.turn, stream.text) == (True, None, "one")


def test_a_stream_that_was_never_read_can_be_closed(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(streamed(b"", ending="held"))

    client.stream("hello").close()

    assert wire.hung_up.wait(10)


BEGUN = [payload_part(sse([{"generation": {"text": "one "}}, {"generation": {"text": "two"}}], done=False))]
NOT_DONE = sse(generation_events("three"), done=False)


def spoilt(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


@pytest.mark.parametrize(
    ("frames", "ending", "code"),
    [
        ([], "whole", "StreamInterrupted"),
        ([], "dropped", "ProtocolError"),
        ([payload_part(NOT_DONE)], "whole", "StreamInterrupted"),
        ([payload_part(b"data: {\"generation\": {\"te")], "whole", "StreamInterrupted"),
        ([payload_part(b"data: 7\n\n")], "whole", "InvalidResponse"),
        ([payload_part(b'data: {"generation": 7}\n\n')], "whole", "InvalidResponse"),
        ([payload_part(sse([{"generation": {"text": ""}}]))], "whole", "InvalidResponse"),
        ([payload_part(sse([{"error": {"code": "internal", "message": "broke"}}]))], "whole", "internal"),
        ([spoilt(payload_part(b"data: [DONE]\n"))], "whole", "ChecksumMismatch"),
        ([stream_exception("InternalStreamFailure", "broke")], "whole", "InternalStreamFailure"),
        ([stream_exception("ModelStreamError", "broke", code="StreamBroken")], "whole", "ModelStreamError"),
        ([stream_exception("ModelStreamError", "StreamBroken: it broke")], "whole", "StreamBroken"),
        ([stream_exception("ModelStreamError", "not in the allotted time")], "whole", "ModelInvocationTimeExceeded"),
        ([stream_exception("SomethingNew", "broke")], "whole", "EventStreamError"),
    ],
)  # fmt: skip
def test_a_stream_that_does_not_end_properly_keeps_what_arrived(
    client: StickyClient, wire: Wire, frames: list[bytes], ending: Any, code: str
) -> None:
    wire.replies.append(streamed(b"", ending=ending))
    wire.replies[0].frames[:] = BEGUN + frames
    stream = client.stream("hello")
    pieces: list[str] = []

    with pytest.raises(StreamInterrupted) as caught:
        pieces.extend(stream)

    assert pieces[:2] == ["one ", "two"]
    assert caught.value.text == stream.text == "".join(pieces)
    assert caught.value.code == code
    assert caught.value.request_id == REQUEST_ID
    assert stream.closed
    assert list(stream) == []


def test_what_goes_wrong_after_the_end_mark_does_not_matter(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(streamed(GENERATION, ending="dropped"))

    stream = client.stream("hello")

    assert "".join(stream) == TEXT
    assert stream.turn is not None


@pytest.mark.parametrize("content", ["hello", [{"role": "user", "content": "hello"}]])
def test_a_stream_goes_on_where_it_broke(client: StickyClient, wire: Wire, content: Any) -> None:
    wire.replies += [Reply(frames=BEGUN, ending="dropped"), streamed(sse(generation_events(" three", " four")))]

    stream = client.stream(content, resume=True, temperature=0.9)

    assert list(stream)[2:] == [" three", " four"]
    assert stream.text == "one two three four"
    assert stream.turn is not None
    assert stream.turn.message == {"role": "assistant", "content": stream.text}
    assert stream.turn.usage == stream.usage
    first, again = (each.body for each in wire.requests)
    assert again == {**first, "answerPrefix": "one two"}


def test_a_stream_that_is_refused_when_asked_again_tells_of_the_break(client: StickyClient, wire: Wire) -> None:
    wire.replies += [Reply(frames=BEGUN, ending="dropped"), aws_error("ServiceUnavailable", 503, "busy")]

    with pytest.raises(StreamInterrupted) as caught:
        list(client.stream("hello", resume=True))

    assert (caught.value.text, caught.value.code) == ("one two", "ProtocolError")
    assert "busy" in str(caught.value.__cause__)


@pytest.mark.parametrize("code", ["internal", "engine_unavailable", "invalid_request"])
def test_an_error_that_the_container_reports_inside_a_stream_is_not_asked_again(
    client: StickyClient, wire: Wire, code: str
) -> None:
    wire.replies.append(streamed(sse([{"error": {"code": code, "message": "broke"}}], done=False)))

    with pytest.raises(StreamInterrupted) as caught:
        list(client.stream("hello", resume=True))

    assert (caught.value.code, len(wire.requests)) == (code, 1)
