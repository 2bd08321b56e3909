"""The limits towards a container, as boto3 sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .scripted import Endpoint, broken, error_of, never, post, respond, streamed, summary

Make = Callable[..., Endpoint]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_container_that_does_not_answer_in_time(make_endpoint: Make, call: str) -> None:
    endpoint = make_endpoint(answer_seconds=0.2)
    endpoint.answers(never)
    response = error_of(getattr(endpoint, call))
    assert summary(response)[:2] == (424, "ModelError")
    assert response["OriginalStatusCode"] == 0
    assert response["Error"]["Message"].startswith(
        'Received server error (0) from primary with message "Your invocation timed out while waiting for a response '
        "from container primary. Review the latency metrics for each container in Amazon CloudWatch, resolve the "
        'issue, and try again.". See https://'
    )
    assert endpoint.container.left.wait(20)


def test_a_container_that_does_not_finish_in_time(make_endpoint: Make) -> None:
    endpoint = make_endpoint(answer_seconds=0.2)

    async def answer(request: Any) -> Any:
        await streamed(request, b"half")
        return await never(request)

    endpoint.answers(answer)
    assert "timed out" in error_of(endpoint.invoke)["Error"]["Message"]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_container_that_takes_no_connection(endpoint: Endpoint, call: str) -> None:
    endpoint.urls["instance-1"] = "http://127.0.0.1:9"
    response = error_of(getattr(endpoint, call))
    assert summary(response)[:2] == (424, "ModelError")
    assert "Amazon SageMaker could not get a response from the sticky endpoint." in response["Error"]["Message"]
    assert response["OriginalStatusCode"] == 0


def test_a_container_that_hangs_up(endpoint: Endpoint) -> None:
    async def answer(request: Any) -> Any:
        request.transport.close()
        return await respond(b"")

    endpoint.answers(answer)
    assert "could not get a response" in error_of(endpoint.invoke)["Error"]["Message"]


@pytest.mark.parametrize("status", [200, 500])
def test_a_response_that_is_too_large(endpoint: Endpoint, status: int) -> None:
    endpoint.answers(lambda request: respond(b"x" * (6 * 1024 * 1024 + 1), status))
    response = error_of(endpoint.invoke)
    assert summary(response)[:2] == (424, "ModelError")
    expected = f"Received server error ({status}) from primary and could not load the entire response body."
    assert response["Error"]["Message"].startswith(expected)
    assert (response["OriginalStatusCode"], response["OriginalMessage"]) == (status, "")


def test_a_response_that_breaks_off(endpoint: Endpoint) -> None:
    endpoint.answers(lambda request: broken(request, b"half"))
    assert "could not load the entire response body" in error_of(endpoint.invoke)["Error"]["Message"]


def test_a_request_that_says_it_is_compressed_passes_as_it_is(endpoint: Endpoint) -> None:
    post(endpoint, "/endpoints/sticky/invocations", b"not gzip", {"Content-Encoding": "gzip"})
    assert endpoint.container.seen[0].body == b"not gzip"


def test_a_body_that_says_it_is_compressed_passes_as_it_is(endpoint: Endpoint) -> None:
    endpoint.answers(lambda request: respond(b"not gzip", headers={"Content-Encoding": "gzip"}))
    assert endpoint.invoke()["Body"] == b"not gzip"
