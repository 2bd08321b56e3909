from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sagemaker_sticky import StreamInterrupted, Usage
from sagemaker_sticky._core.stream_reader import LineBuffer, StreamReader

from tests.client.test_stream import COMPLETION, GENERATION, TEXT, completion
from tests.client.wire import generation_events, openai_usage, sse

UNHURRIED = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
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


@st.composite
def recordings(draw: st.DrawFn) -> bytes:
    """A stream as a container may write it: either shape, keep-alives, either line end, with a last newline or not."""
    pieces = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6))
    if draw(st.booleans()):
        events = generation_events(*pieces)
    else:
        last = {"choices": [], "usage": openai_usage()}
        events = [*(completion({"content": piece}) for piece in pieces), completion({}, finish_reason="stop"), last]
    content = sse(events)
    if draw(st.booleans()):
        content = content.replace(b"\n\n", b"\n\n: keep-alive\n\n")
    if draw(st.booleans()):
        content = content.replace(b"\n", b"\r\n")
    return content.rstrip(b"\r\n") if draw(st.booleans()) else content


@given(recording=recordings(), cuts=st.lists(st.integers(0, 2000), max_size=40))
@settings(UNHURRIED, max_examples=300)
def test_no_cut_of_a_stream_changes_what_it_says(recording: bytes, cuts: list[int]) -> None:
    whole, reader = read(recording)
    places = sorted({min(cut, len(recording)) for cut in cuts} | {0, len(recording)})

    pieces, cut_reader = read(*(recording[start:end] for start, end in pairwise(places)))

    assert pieces == whole
    assert cut_reader.turn() == reader.turn()


@given(recording=recordings(), end=st.integers(0, 2000))
@settings(UNHURRIED, max_examples=200)
def test_a_stream_that_is_not_whole_never_passes_for_one(recording: bytes, end: int) -> None:
    whole = read(recording)[1].text
    part = recording[: min(end, recording.rindex(b"]"))]  # before the end mark is whole

    with pytest.raises(StreamInterrupted) as caught:
        read(part)

    assert whole.startswith(caught.value.text)


@pytest.mark.parametrize("rest", [b'data: {"generation": {"te', b'data: {"generation": {"text": "\xc3', b"data: [DON"])
def test_half_an_event_at_the_end_is_a_break(rest: bytes) -> None:
    with pytest.raises(StreamInterrupted) as caught:
        read(sse([{"generation": {"text": "one"}}], done=False) + rest)

    assert (caught.value.text, caught.value.code) == ("one", "StreamInterrupted")


@pytest.mark.parametrize(
    "event", [b"data: {", b'data: {"a": 1} x', b"data: \xff", b"data:", b'data: "text"', b"data: 7"]
)
def test_a_whole_event_that_is_none_is_not_of_the_contract(event: bytes) -> None:
    with pytest.raises(StreamInterrupted) as caught:
        read(b"data: " + event + b"\n\n")

    assert caught.value.code == "InvalidResponse"


def test_an_event_of_openai_without_choices_is_refused() -> None:
    with pytest.raises(StreamInterrupted, match="choices"):
        read(b"data: " + json.dumps({"object": "x"}).encode() + b"\n\n")
