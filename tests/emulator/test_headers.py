from __future__ import annotations

import pytest

from emulator import headers
from emulator.errors import AwsError

SENT = {
    "Accept": "application/json",
    "Authorization": "AWS4-HMAC-SHA256 …",
    "Content-Type": "application/json",
    "User-Agent": "Boto3",
    "X-Amz-Date": "20300101T000000Z",
    "X-Amzn-SageMaker-Accept": "text/event-stream",
    "X-Amzn-SageMaker-Custom-Attributes": "trace=1",
    "X-Amzn-SageMaker-Inference-Id": "i-1",
    "X-Amzn-SageMaker-Session-Id": "s-1",
    "X-Request-Id": "mine",
}


def test_what_a_container_sees_of_an_invoke() -> None:
    assert headers.for_invoke(SENT) == {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "X-Amzn-SageMaker-Custom-Attributes": "trace=1",
        "X-Amzn-SageMaker-Inference-Id": "i-1",
        "X-Amzn-SageMaker-Session-Id": "s-1",
    }


def test_a_stream_says_accept_under_its_own_header() -> None:
    assert headers.for_stream(SENT)["Accept"] == "text/event-stream"
    assert "Accept" not in headers.for_stream({"Accept": "*/*"})


@pytest.mark.parametrize("session_id", ["a", "A-1", "a--b", "0", "x" * 256])
def test_session_ids_that_the_api_takes(session_id: str) -> None:
    headers.check({headers.SESSION_ID_HEADER: session_id}, may_open=False)


@pytest.mark.parametrize("session_id", ["", "a_b", "a.b", "-a", "a-", "a b", "ä", "new_session", "x" * 257])
def test_session_ids_that_the_api_refuses(session_id: str) -> None:
    with pytest.raises(AwsError, match="'sessionId' failed to satisfy constraint: Member must") as caught:
        headers.check({headers.SESSION_ID_HEADER: session_id}, may_open=True)
    assert (caught.value.name, caught.value.status) == ("ValidationError", 400)


def test_a_stream_cannot_open_a_session() -> None:
    headers.check({headers.SESSION_ID_HEADER: "NEW_SESSION"}, may_open=True)
    with pytest.raises(AwsError, match="regular expression"):
        headers.check({headers.SESSION_ID_HEADER: "NEW_SESSION"}, may_open=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Amzn-SageMaker-Custom-Attributes", "x" * 1025),
        ("X-Amzn-SageMaker-Custom-Attributes", "grün"),
        ("X-Amzn-SageMaker-Prefix-Aware-Id", ""),
        ("X-Amzn-SageMaker-Prefix-Aware-Id", " x"),
        ("X-Amzn-SageMaker-Prefix-Aware-Id", "x" * 65),
    ],
)
def test_other_constraints(name: str, value: str) -> None:
    with pytest.raises(AwsError, match="failed to satisfy constraint"):
        headers.check({name: value}, may_open=True)


@pytest.mark.parametrize("name", ["X-Amzn-SageMaker-Session-Id", "X-Amzn-SageMaker-New-Session-Id"])
def test_a_session_is_announced_under_either_header(name: str) -> None:
    announced = headers.announced({name: "s-1; Expires=2030-01-01T00:00:00Z"})
    assert announced == headers.Announcement("s-1", 1893456000.0)


@pytest.mark.parametrize("value", ["s-1", "s-1; Expires=soon", "s_1; Expires=2030-01-01T00:00:00Z", "; Expires=", ""])
def test_a_malformed_announcement_announces_nothing(value: str) -> None:
    assert headers.announced({"X-Amzn-SageMaker-Session-Id": value}) is None


def test_what_a_caller_sees() -> None:
    answered = SENT | {"Server": "sanic", "X-Served-By": "i-0"}
    assert headers.passed_back(answered) == {
        "Content-Type": "application/json",
        "X-Amzn-SageMaker-Custom-Attributes": "trace=1",
    }
