from __future__ import annotations

import json
from typing import Any

import pytest
from sagemaker_sticky import StickyClient, StreamInterrupted, Usage
from sagemaker_sticky._stream import LineBuffer, StreamReader

from tests.client.wire import (
    REQUEST_ID,
    Wire,
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
RECORDED = {
    "generation": GENERATION,
    "completion": COMPLETION,
    "one newline between events": GENERATION.replace(b"\n\n", b"\n"),
    "carriage returns": GENERATION.replace(b"\n", b"\r\n"),
    "no space after the colon": GENERATION.replace(b"data: ", b"data:"),
    "keep-alives and other fields": b": ping\n\nevent: x\nid: 1\n" + GENERATION.replace(b"\n\n", b"\n\n:\n\n"),
    "no final newline": GENERATION.rstrip(b"\n"),
}


def read(*parts: bytes) -> tuple[list[str], StreamReader]:
    reader = StreamReader()
    pieces = [piece for part in parts for piece in reader.feed(part)] + list(reader.end())
    return pieces, reader


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
def test_any_cut_gives_the_same_pieces(recorded: bytes) -> None:
    whole, reader = read(recorded)

    assert "".join(whole) == reader.text == TEXT
    assert reader.turn().usage == Usage(5, 2, 3)
    assert reader.turn().finish_reason == "stop"
    assert reader.turn().session is not None
    for cut in range(len(recorded) + 1):
        assert read(recorded[:cut], recorded[cut:])[0] == whole
    assert read(*(recorded[at : at + 1] for at in range(len(recorded))))[0] == whole


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_parts_of_any_size_give_the_same_turn(size: int) -> None:
    parts = [COMPLETION[at : at + size] for at in range(0, len(COMPLETION), size)]

    assert read(*parts)[1].turn() == read(COMPLETION)[1].turn()


def test_a_line_buffer_keeps_what_is_not_whole() -> None:
    lines = LineBuffer()

    assert lines.feed(b"a\nb") == [b"a"]
    assert lines.feed(b"c") == []
    assert lines.feed(b"\n\nd") == [b"bc", b""]
    assert lines.end() == [b"d"]
    assert lines.end() == []


def test_tool_calls_are_put_together_from_their_deltas() -> None:
    def call(index: int, **rest: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, **rest}]}

    events = [
        completion({"role": "assistant", "content": None}),
        completion(call(0, id="c0", type="function", function={"name": "sum", "arguments": ""})),
        completion(call(0, function={"arguments": '{"a":'})),
        completion(call(1, id="c1", type="function", function={"name": "now", "arguments": "{}"})),
        completion(call(0, function={"arguments": "1}"})),
        completion({}, finish_reason="tool_calls"),
        {"choices": [], "usage": openai_usage()},
    ]

    pieces, reader = read(sse(events))

    assert pieces == []
    assert reader.turn().message == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "sum", "arguments": '{"a":1}'}},
            {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
        ],
    }


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
        ([payload_part(b"data: {\"generation\": {\"te")], "whole", "InvalidResponse"),
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


def test_an_event_of_openai_without_choices_is_refused() -> None:
    with pytest.raises(StreamInterrupted, match="choices"):
        read(b"data: " + json.dumps({"object": "x"}).encode() + b"\n\n")
