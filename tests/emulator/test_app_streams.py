"""Streams as boto3 and OpenAI's clients see them; what a stream shares with the other call is in test_app."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import EventStreamError
from urllib3.exceptions import ProtocolError

from emulator.config import Readings

from .scripted import CLOSED, SESSION, Endpoint, broken, never, parts, post, respond, streamed

Make = Callable[..., Endpoint]


def test_a_stream(endpoint: Endpoint) -> None:
    sse = 'data: {"text": "Grüße 👋"}\n\n'.encode(), b"data: [DONE]\n\n"
    endpoint.answers(partial(streamed_later, sse))
    endpoint.open("s-1")
    endpoint.answers(partial(streamed_later, sse))
    response = endpoint.stream(SessionId="s-1", Accept="text/event-stream", ContentType="application/json")
    assert response["ContentType"] == "text/event-stream"
    assert response["InvokedProductionVariant"] == "AllTraffic"
    assert response["ResponseMetadata"]["HTTPHeaders"]["content-type"] == "application/vnd.amazon.eventstream"
    assert b"".join(parts(response)) == b"".join(sse)
    seen = endpoint.container.seen[-1]
    assert (seen.headers[SESSION.lower()], seen.headers["accept"]) == ("s-1", "text/event-stream")


def streamed_later(chunks: tuple[bytes, ...], request: Any, release: threading.Event | None = None) -> Any:
    return streamed(request, *chunks, release=release)


def test_parts_come_while_the_container_still_writes(endpoint: Endpoint) -> None:
    release = threading.Event()
    endpoint.answers(partial(streamed_later, (b"first", b"last"), release=release))
    events = iter(endpoint.stream()["Body"])
    assert next(events)["PayloadPart"]["Bytes"] == b"first"
    release.set()
    assert [event["PayloadPart"]["Bytes"] for event in events] == [b"last"]


def test_parts_are_cut_to_size(make_endpoint: Make) -> None:
    endpoint = make_endpoint(part_bytes=(1, 3))
    endpoint.answers(partial(streamed_later, (b"abcdef", b"gh")))
    assert parts(endpoint.stream()) == [b"a", b"bcd", b"e", b"fgh"]


def test_a_stream_that_closes_a_session_ends_it(endpoint: Endpoint) -> None:
    endpoint.open("s-1")
    endpoint.answers(lambda request: respond(b"{}", headers={CLOSED: "s-1"}))
    response = endpoint.stream(SessionId="s-1")
    assert parts(response) == [b"{}"]
    assert CLOSED.lower() not in response["ResponseMetadata"]["HTTPHeaders"]
    assert endpoint.router.sessions == {}


def ending(response: Any) -> tuple[bytes, Exception]:
    received = b""
    try:
        for event in response["Body"]:
            received += event["PayloadPart"]["Bytes"]
    except (EventStreamError, ProtocolError) as error:
        return received, error
    finally:
        response["Body"].close()
    raise AssertionError("the stream ended as if it were whole")


@pytest.mark.parametrize(
    ("reading", "error", "text"),
    [
        ("model_stream_error", EventStreamError, "ModelStreamError"),
        ("internal_stream_failure", EventStreamError, "InternalStreamFailure"),
        ("dropped", ProtocolError, ""),
    ],
)
@pytest.mark.parametrize("part_bytes", [(), (5,)])
def test_a_container_that_breaks_off(
    make_endpoint: Make, reading: Any, error: type[Exception], text: str, part_bytes: tuple[int, ...]
) -> None:
    endpoint = make_endpoint(readings=Readings(broken_stream=reading), part_bytes=part_bytes)
    release = threading.Event()

    async def answer(request: Any) -> Any:
        # Else the cut could overtake the bytes before it.
        response = await streamed(request, b"data: one\n\n")
        await asyncio.to_thread(release.wait, 20)
        request.transport.close()
        return response

    endpoint.answers(answer)
    response = endpoint.stream()
    release.set()
    received, caught = ending(response)
    assert isinstance(caught, error)
    assert text in str(caught)
    assert received == b"data: one\n\n"


def test_a_stream_that_takes_too_long(make_endpoint: Make) -> None:
    endpoint = make_endpoint(stream_seconds=0.2)
    release = threading.Event()
    endpoint.answers(partial(streamed_later, (b"first", b"last"), release=release))
    received, caught = ending(endpoint.stream())
    release.set()
    assert received == b"first"
    assert "ModelStreamError" in str(caught)
    assert "allotted time" in str(caught)


def test_a_caller_who_leaves_a_stream_ends_the_work(endpoint: Endpoint) -> None:
    async def answer(request: Any) -> Any:
        await streamed(request, b"first")
        return await never(request)

    endpoint.answers(answer)
    body = endpoint.stream()["Body"]
    assert next(iter(body))["PayloadPart"]["Bytes"] == b"first"
    body.close()
    assert endpoint.container.left.wait(20)


def test_the_openai_path(endpoint: Endpoint) -> None:
    endpoint.answers(partial(streamed_later, (b"data: {}\n\n", b"data: [DONE]\n\n")))
    headers = {"Content-Type": "application/json", SESSION: "s-1", "Authorization": "Bearer x"}
    status, answered, body = post(
        endpoint, "/endpoints/sticky/openai/v1/chat/completions", b'{"stream": true}', headers
    )
    assert (status, answered["Content-Type"], body) == (200, "text/event-stream", b"data: {}\n\ndata: [DONE]\n\n")
    [seen] = endpoint.container.seen
    assert (seen.path, seen.body) == ("/v1/chat/completions", b'{"stream": true}')
    assert not {SESSION.lower(), "authorization"} & seen.headers.keys()


def test_an_error_on_the_openai_path(endpoint: Endpoint) -> None:
    endpoint.answers(lambda request: respond(b"{}", 400))
    status, headers, body = post(endpoint, "/endpoints/sticky/openai/v1/chat/completions")
    assert (status, headers["x-amzn-errortype"], json.loads(body)["OriginalStatusCode"]) == (424, "ModelError", 400)


def test_an_openai_stream_that_breaks_off_is_cut(endpoint: Endpoint) -> None:
    endpoint.answers(lambda request: broken(request, b"data: {}\n\n"))
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        post(endpoint, "/endpoints/sticky/openai/v1/chat/completions")
