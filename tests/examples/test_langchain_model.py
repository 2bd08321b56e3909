"""`ChatSticky` beyond what the example shows: tools, parameters, and where it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from pydantic import ValidationError
from sagemaker_sticky import StickyClient
from sagemaker_sticky.langchain import ChatSticky

from tests.client.conftest import credentials, endpoint_url, no_aws_settings, runtime, served, wire
from tests.client.wire import Wire, answer, completed, openai_usage, opened, sse, streamed

__all__ = ["credentials", "endpoint_url", "no_aws_settings", "runtime", "served", "wire"]
CALL = {"id": "c-1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
CLOSED = answer({}, X_Amzn_SageMaker_Closed_Session_Id="s-1")


@pytest.fixture
def client(wire: Wire, runtime: Any) -> StickyClient:
    return StickyClient("house", runtime=runtime)


def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


def test_a_call_of_a_tool(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(completed({"content": None, "tool_calls": [CALL]}, finish_reason="tool_calls"))

    answered = ChatSticky(client=client).bind_tools([weather], tool_choice="auto").invoke("Weather in Rome?")

    assert isinstance(answered, AIMessage)
    assert answered.tool_calls == [{"name": "weather", "args": {"city": "Rome"}, "id": "c-1", "type": "tool_call"}]
    assert answered.response_metadata["finish_reason"] == "tool_calls"
    body = wire.requests[0].body
    assert (body["tools"][0]["function"]["name"], body["tool_choice"]) == ("weather", "auto")


def test_a_streamed_call_of_a_tool(client: StickyClient, wire: Wire) -> None:
    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    calls = chunk({"role": "assistant", "tool_calls": [{"index": 0, **CALL}]})
    wire.replies.append(streamed(sse([calls, chunk({}, "tool_calls"), {"choices": [], "usage": openai_usage()}])))

    whole = None
    for each in ChatSticky(client=client).stream("Weather in Rome?"):
        assert isinstance(each, AIMessageChunk)
        whole = each if whole is None else whole + each

    assert isinstance(whole, AIMessageChunk)
    assert [call["args"] for call in whole.tool_calls] == [{"city": "Rome"}]
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["input_token_details"] == {"cache_read": 2}


def test_in_a_session_the_whole_conversation_is_said_to_be_whole(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), completed({"content": "hi"}), CLOSED]

    with client.session() as session:
        model = ChatSticky(session=session, parameters={"max_tokens": 5})
        model.invoke([HumanMessage("hello")], stop=["."], temperature=0)

    assert wire.requests[1].body == {
        "requestType": "SESSION",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "temperature": 0,
        "stop": ["."],
        "history": "full",
    }


@pytest.mark.parametrize("both", [True, False])
def test_it_takes_a_session_or_a_client(client: StickyClient, both: bool) -> None:
    given: dict[str, Any] = {"client": client, "session": client.session()} if both else {}
    make: Callable[..., ChatSticky] = ChatSticky

    with pytest.raises(ValidationError, match="either 'session' or 'client'"):
        make(**given)
