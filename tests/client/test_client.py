from __future__ import annotations

from typing import Any

import boto3
import pytest
from sagemaker_sticky import EndpointFailed, NotConfigured, StickyClient

from tests.client.wire import Wire, answer, aws_error, completed, generated, generation_events, meta_info, sse, streamed

USER = {"role": "user", "content": "hello"}


def test_text_without_a_session_is_a_raw_prompt(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(answer({"generation": {"text": "hi", "meta_info": meta_info()}}))

    turn = client.invoke("hello", temperature=0)

    assert (turn.text, turn.session) == ("hi", None)
    (request,) = wire.requests
    assert request.path == "/endpoints/house/invocations"
    assert request.session_id is None
    assert request.body == {"inputs": "hello", "parameters": {"temperature": 0}}
    assert (request.headers["Content-Type"], request.headers["Accept"]) == ("application/json", "application/json")


def test_messages_without_a_session_are_openais_chat(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(completed({"content": "hi"}))

    assert client.invoke([USER], max_tokens=5).text == "hi"
    assert wire.requests[0].body == {"messages": [USER], "max_tokens": 5}


def test_a_stream_without_a_session(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(streamed(sse(generation_events("a", "b", turn=None))))

    stream = client.stream("hello")

    assert list(stream) == ["a", "b"]
    assert stream.session is None
    (request,) = wire.requests
    assert request.path == "/endpoints/house/invocations-response-stream"
    assert request.session_id is None
    assert request.body == {"inputs": "hello", "stream": True}
    assert request.headers["X-Amzn-SageMaker-Accept"] == "text/event-stream"


def test_a_target_goes_with_every_call(wire: Wire, runtime: Any) -> None:
    client = StickyClient("house", runtime=runtime, target_variant="blue", inference_component_name="small")
    wire.replies += [generated("a"), streamed(sse(generation_events("b")))]

    client.invoke("hello")
    list(client.stream("hello"))

    for request in wire.requests:
        assert request.headers["X-Amzn-SageMaker-Target-Variant"] == "blue"
        assert request.headers["X-Amzn-SageMaker-Inference-Component"] == "small"


def test_a_client_makes_its_runtime_where_it_is_told() -> None:
    session = boto3.session.Session("mine", "secret", region_name="us-east-1")

    client = StickyClient("house", boto3_session=session, region_name="eu-central-1")

    runtime = client._transport._runtime
    assert runtime.meta.region_name == "eu-central-1"
    assert runtime._request_signer._credentials.access_key == "mine"


@pytest.mark.parametrize("settings", [{}, {"AWS_MAX_ATTEMPTS": "7", "AWS_RETRY_MODE": "adaptive"}])
def test_the_runtime_waits_for_a_generation_and_never_repeats_one(
    wire: Wire, credentials: None, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    wire.replies.append(aws_error("InternalFailure", 500, "a generation may have happened"))
    client = StickyClient("house")

    with pytest.raises(EndpointFailed):
        client.invoke("hello")

    assert len(wire.requests) == 1
    assert client._transport._runtime.meta.config.read_timeout == 70


@pytest.mark.parametrize("other", [{"region_name": "eu-west-1"}, {"boto3_session": object()}])
def test_a_runtime_goes_with_no_other_settings(runtime: Any, other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="runtime"):
        StickyClient("house", runtime=runtime, **other)


def test_an_unknown_region_setting_is_told_at_once() -> None:
    with pytest.raises(NotConfigured):
        StickyClient("house", region_name="not a region")
