from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from sagemaker_sticky import InvalidRequest, RequestTooLarge
from sagemaker_sticky._core.calls import RESERVED, Call, close_call, open_call, turn_call
from sagemaker_sticky_protocol import MAX_BODY_BYTES, NEW_SESSION

USER = {"role": "user", "content": "hello"}


def body(call: Call) -> Any:
    return json.loads(call.body)


def test_an_open_says_so_twice() -> None:
    call = open_call()

    assert call.session_id == NEW_SESSION
    assert body(call) == {"requestType": "NEW_SESSION"}


def test_an_open_proposes_an_id_and_a_context() -> None:
    assert body(open_call(session_id="a-1", messages=[USER])) == {
        "requestType": "NEW_SESSION",
        "extSessionID": "a-1",
        "messages": [USER],
    }


@pytest.mark.parametrize("session_id", ["", "-a", "a-", "a_b", "a.b", "é", "a" * 257, "NEW_SESSION", "a\n"])
def test_an_id_that_sagemaker_refuses_is_not_sent(session_id: str) -> None:
    with pytest.raises(InvalidRequest, match=r"inner hyphens.*, got"):
        open_call(session_id=session_id)


def test_text_goes_as_inputs_with_parameters_beside_it() -> None:
    call = turn_call("hello", {"temperature": 0}, session_id="a")

    assert call.session_id == "a"
    assert body(call) == {"requestType": "SESSION", "inputs": "hello", "parameters": {"temperature": 0}}


def test_messages_go_with_openais_fields_at_the_top() -> None:
    assert body(turn_call([USER], {"max_tokens": 5}, session_id="a")) == {
        "requestType": "SESSION",
        "messages": [USER],
        "max_tokens": 5,
    }


def test_without_a_session_nothing_speaks_of_one() -> None:
    call = turn_call("hello", {})

    assert call.session_id is None
    assert body(call) == {"inputs": "hello"}


def test_a_stream_of_messages_asks_for_usage_too() -> None:
    assert body(turn_call("hello", {}, stream=True)) == {"inputs": "hello", "stream": True}
    assert body(turn_call([USER], {}, stream=True)) == {
        "messages": [USER],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_close_says_so() -> None:
    assert body(close_call("a")) == {"requestType": "CLOSE"}
    assert close_call("a").session_id == "a"


def test_messages_may_be_any_mapping() -> None:
    assert body(turn_call((MappingProxyType(USER),), {})) == {"messages": [USER]}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "empty"),
        ([], "empty"),
        (b"hello", "got bytes"),
        (USER, "got dict"),
        (None, "got NoneType"),
        (["hello"], "message 0 should be a mapping with a 'role', got str"),
        ([USER, {"content": "x"}], "message 1"),
        ("\ud800", "JSON"),
    ],
)
def test_content_that_cannot_be_sent_is_refused(content: Any, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint) as caught:
        turn_call(content, {})

    assert (caught.value.code, caught.value.status) == ("invalid_request", None)


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"x"])
def test_a_parameter_that_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="JSON"):
        turn_call("hello", {"stop": value})


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_field_of_the_contract_is_not_a_parameter(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        turn_call("hello", {name: 1})


def test_every_field_that_this_package_sets_is_reserved() -> None:
    everything: dict[str, Any] = {"session_id": "s-1", "stream": True, "rewind": 1, "turn": 2, "answer_prefix": "a"}
    calls = [
        open_call(session_id="s-1", messages=[USER], ttl_seconds=60),
        turn_call("hello", {"temperature": 0}, **everything),
        turn_call([USER], {}, **everything),
        close_call("s-1"),
    ]

    # Those that are never set, but would mean the same: a raw prompt, and the other spelling of 'parameters'.
    assert {name for call in calls for name in body(call)} == RESERVED - {"prompt", "sampling_params"}


def test_a_body_is_measured_in_bytes_up_to_the_limit() -> None:
    room = MAX_BODY_BYTES - len(turn_call("x", {}).body) + 1

    assert len(turn_call("é" * (room // 2) + "x" * (room % 2), {}).body) == MAX_BODY_BYTES
    with pytest.raises(RequestTooLarge, match="6,291,459 bytes, 3 more than the 6,291,456") as caught:
        turn_call("x" * (room + 3), {})
    assert caught.value.code == "request_too_large"
