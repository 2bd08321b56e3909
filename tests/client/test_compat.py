"""The 2025 sample's class, used as its notebook uses it."""

from __future__ import annotations

import json

import botocore.exceptions
import pytest
from sagemaker_sticky import StreamInterrupted
from sagemaker_sticky.compat import StatefulSMEDPBuilder
from sagemaker_sticky_protocol import ErrorCode

from tests.client.wire import (
    Wire,
    answer,
    aws_error,
    container_error,
    generated,
    generation_events,
    opened,
    sse,
    streamed,
)


@pytest.fixture
def builder(wire: Wire, credentials: None) -> StatefulSMEDPBuilder:
    return StatefulSMEDPBuilder("house")


def test_a_conversation_as_in_the_sample(builder: StatefulSMEDPBuilder, wire: Wire) -> None:
    wire.replies += [opened("abc"), generated("hi"), answer({}, X_Amzn_SageMaker_Closed_Session_Id="abc")]

    start = builder.start_session("abc")
    response = builder.invoke("hello", extSessID="abc")
    end = builder.end_session("abc")

    assert start["NewSessionId"].startswith("abc; Expires=")
    assert json.loads(response["Body"].read())["generation"]["text"] == "hi"
    assert end["ClosedSessionId"] == "abc"
    assert [(request.session_id, request.body) for request in wire.requests] == [
        ("NEW_SESSION", {"requestType": "NEW_SESSION", "extSessionID": "abc"}),
        (
            "abc",
            {
                "inputs": "hello",
                "sampling_params": {"temperature": 0.9, "max_new_token": 128, "do_sample": True},
                "extSessionID": "abc",
                "requestType": "SESSION",
            },
        ),
        ("abc", {"requestType": "CLOSE_SESSION"}),
    ]


def test_without_a_session_none_is_named(builder: StatefulSMEDPBuilder, wire: Wire) -> None:
    wire.replies.append(generated("hi"))

    builder.invoke("hello", {"temperature": 0})

    (request,) = wire.requests
    assert request.session_id is None
    assert request.body == {"inputs": "hello", "sampling_params": {"temperature": 0}}


@pytest.mark.parametrize("session_id", [None, "abc"])
def test_a_stream_yields_text(builder: StatefulSMEDPBuilder, wire: Wire, session_id: str | None) -> None:
    wire.replies.append(streamed(sse(generation_events("a", "b"))))

    assert list(builder.invoke_stream("hello", {}, session_id)) == ["a", "b"]

    (request,) = wire.requests
    assert request.session_id == session_id
    session = {} if session_id is None else {"extSessionID": "abc", "requestType": "SESSION"}
    assert request.body == {"inputs": "hello", "sampling_params": {}, "stream": True, **session}


def test_errors_are_boto3s(builder: StatefulSMEDPBuilder, wire: Wire) -> None:
    wire.replies += [container_error(ErrorCode.SESSION_NOT_FOUND)] * 2

    with pytest.raises(botocore.exceptions.ClientError) as caught:
        builder.invoke("hello", extSessID="abc")
    with pytest.raises(botocore.exceptions.ClientError):
        builder.invoke_stream("hello", extSessID="abc")

    assert caught.value.response["OriginalStatusCode"] == 404


def test_a_stream_that_breaks_is_told(builder: StatefulSMEDPBuilder, wire: Wire) -> None:
    wire.replies.append(streamed(sse(generation_events("a"), done=False)))

    with pytest.raises(StreamInterrupted):
        list(builder.invoke_stream("hello"))


def test_a_request_is_never_repeated(builder: StatefulSMEDPBuilder, wire: Wire) -> None:
    wire.replies.append(aws_error("InternalFailure", 500, "a generation may have happened"))

    with pytest.raises(botocore.exceptions.ClientError):
        builder.invoke("hello")

    assert len(wire.requests) == 1
