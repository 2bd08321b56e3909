from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from sagemaker_sticky import InvalidResponse, Usage
from sagemaker_sticky._core.answers import read_expiry, read_json, read_turn

from tests.client.wire import meta_info, openai_usage, session


def test_a_generation_is_a_turn() -> None:
    body = {"generation": {"text": "hi", "meta_info": meta_info()}, "session": session(turn=3)}

    turn = read_turn(body)

    assert (turn.text, turn.usage, turn.finish_reason, turn.raw) == ("hi", Usage(5, 2, 3), "stop", body)
    assert turn.message == {"role": "assistant", "content": "hi"}
    assert turn.session is not None
    assert (turn.session.turn, turn.session.served_by) == (3, "i-1")


def test_a_chat_completion_is_a_turn() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}

    turn = read_turn({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": openai_usage()})

    assert (turn.text, turn.usage, turn.finish_reason) == ("", Usage(5, 2, 3), "tool_calls")
    assert (turn.message, turn.session) == (message, None)


@pytest.mark.parametrize("details", [{}, {"prompt_tokens_details": None}])
def test_openais_usage_without_details_means_nothing_cached(details: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 3, **details}

    turn = read_turn({"choices": [{"message": {"content": "hi"}}], "usage": usage})

    assert turn.usage == Usage(5, 0, 3)


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33)


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({}, "choices"),
        ({"choices": [], "usage": {}}, "index"),
        ({"choices": [{"message": {"content": "hi"}}]}, "usage"),
        ({"choices": [{"message": {"content": "hi"}}], "usage": None}, "AttributeError"),
        ({"generation": "hi"}, "TypeError"),
        ({"generation": {"text": "hi"}}, "meta_info"),
        ({"generation": {"text": "hi", "meta_info": {"finish_reason": None}}}, "prompt_tokens"),
        ({"generation": {"text": "hi", "meta_info": meta_info()}, "session": {"id": "a"}}, "expires_at"),
        ({"generation": {"text": "hi", "meta_info": meta_info()}, "session": "a"}, "TypeError"),
    ],
)
def test_an_answer_of_another_contract_is_told(body: dict[str, Any], missing: str) -> None:
    with pytest.raises(InvalidResponse, match=missing):
        read_turn(body)


@pytest.mark.parametrize("body", [b"", b"secret words", b"[1]", b"\xff"])
def test_a_body_that_is_no_object_is_told_without_showing_it(body: bytes) -> None:
    with pytest.raises(InvalidResponse) as caught:
        read_json(body)

    assert "secret" not in str(caught.value)


def test_an_expiry_is_in_utc() -> None:
    assert read_expiry("2030-01-02T03:04:05Z") == datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    with pytest.raises(InvalidResponse, match="'tomorrow'"):
        read_expiry("tomorrow")
