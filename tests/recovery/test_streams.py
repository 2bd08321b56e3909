"""A stream that breaks: never a piece twice, and nothing counts that the caller did not get."""

from __future__ import annotations

import pytest
from sagemaker_sticky import StickyClient, StreamInterrupted

from emulator.pytest_plugin import Control

from .conversation import FIRST, SECOND, THIRD, begun, prompt_tokens, reply, transcript

BREAKS = ["break_after_bytes", "cut_after_bytes"]
ONE_EVENT = len(b'data: {"generation":{"text":"You "}}\n\n')


@pytest.mark.parametrize("kind", BREAKS)
@pytest.mark.parametrize("after", [0, ONE_EVENT - 10])
def test_a_break_before_the_first_text_is_not_seen(
    client: StickyClient, control: Control, kind: str, after: int
) -> None:
    session = begun(client)
    control.fault(session=session.id, operation="stream", **{kind: after})
    stream = session.stream(SECOND)
    assert "".join(stream) == stream.text == reply(SECOND)
    assert (session.turn, session.messages) == (2, transcript(FIRST, SECOND))
    assert stream.usage is not None
    assert stream.usage.prompt_tokens == prompt_tokens(client, FIRST, SECOND)


def test_a_second_break_is_told(client: StickyClient, control: Control) -> None:
    session = begun(client)
    control.fault(operation="stream", break_after_bytes=0, times=3)
    with pytest.raises(StreamInterrupted) as caught:
        list(session.stream(SECOND))
    assert caught.value.text == ""
    assert control.faults[0]["times"] == 1


@pytest.mark.parametrize("kind", BREAKS)
def test_after_text_the_break_is_told_with_the_text(client: StickyClient, control: Control, kind: str) -> None:
    session = begun(client)
    control.fault(session=session.id, operation="stream", **{kind: 3 * ONE_EVENT + 5})
    stream, pieces = session.stream(SECOND), []
    with pytest.raises(StreamInterrupted) as caught:
        pieces.extend(stream)
    assert "".join(pieces) == caught.value.text == stream.text
    assert 0 < len(stream.text) < len(reply(SECOND))
    assert reply(SECOND).startswith(stream.text)
    assert (session.turn, session.reopened, stream.turn) == (1, 0, None)
    assert session.invoke(THIRD).usage.prompt_tokens == prompt_tokens(client, FIRST, THIRD)
    assert session.messages[2:] == transcript(FIRST, THIRD)[2:]


@pytest.mark.parametrize("kind", BREAKS)
@pytest.mark.parametrize("part_bytes", [[], [1, 7]])
@pytest.mark.parametrize("messages", [False, True])
def test_a_stream_resumes(
    client: StickyClient, control: Control, kind: str, part_bytes: list[int], messages: bool
) -> None:
    session = begun(client)
    fault = {kind: 2 * (ONE_EVENT + 200 * messages) + 3, "part_bytes": part_bytes}
    control.fault(session=session.id, operation="stream", times=3, **fault)
    stream = session.stream([{"role": "user", "content": SECOND}] if messages else SECOND, resume=True)
    assert "".join(stream) == stream.text == reply(SECOND)
    assert control.faults == []
    assert (session.turn, session.reopened, session.messages) == (2, 0, transcript(FIRST, SECOND))
    assert session.invoke(THIRD).usage.prompt_tokens == prompt_tokens(client, FIRST, SECOND, THIRD)


def test_a_stream_that_gets_no_further_gives_up(client: StickyClient, control: Control) -> None:
    session = begun(client)
    control.fault(session=session.id, operation="stream", break_after_bytes=2 * ONE_EVENT)
    control.fault(session=session.id, operation="stream", break_after_bytes=0, times=5)
    with pytest.raises(StreamInterrupted) as caught:
        list(session.stream(SECOND, resume=True))
    assert reply(SECOND).startswith(caught.value.text)
    assert caught.value.text
    assert control.faults[0]["times"] == 4


def test_a_stream_resumes_in_another_session(client: StickyClient, control: Control) -> None:
    session = begun(client)
    control.fault(session=session.id, operation="stream", break_after_bytes=3 * ONE_EVENT)
    control.fault(session=session.id, operation="stream", answer=424, status=404, code="session_not_found")
    stream = session.stream(SECOND, resume=True)
    assert "".join(stream) == reply(SECOND)
    assert (session.turn, session.reopened) == (2, 1)


@pytest.mark.parametrize("messages", [False, True])
def test_without_a_session_a_stream_resumes_too(client: StickyClient, control: Control, messages: bool) -> None:
    control.fault(break_after_bytes=2 * (ONE_EVENT + 200 * messages))
    stream = client.stream([{"role": "user", "content": "Hello"}] if messages else "Hello", resume=True)
    assert "".join(stream) == "You said: Hello"
    assert control.faults == []
    control.fault(break_after_bytes=0)
    with pytest.raises(StreamInterrupted):
        list(client.stream("Hello"))


def test_a_model_that_fails_inside_a_stream_is_not_asked_again(client: StickyClient, control: Control) -> None:
    session = begun(client)
    control.fault(operation="stream", answer=424, code="internal", times=2)
    with pytest.raises(Exception, match="asked for"):
        list(session.stream(SECOND, resume=True))
    assert len(control.faults) == 1


@pytest.mark.parametrize("left_after", [1, 8])
def test_a_stream_that_was_left_does_not_count(client: StickyClient, left_after: int) -> None:
    session = begun(client)
    with session.stream("Forget this.") as stream:
        for _ in range(left_after):
            next(stream, None)
    counted = session.turn
    assert session.invoke(THIRD).usage.prompt_tokens == prompt_tokens(client, *[FIRST, "Forget this."][:counted], THIRD)
    assert session.turn == counted + 1
