"""What boto3 sees: the real client against the app, in front of containers whose bytes the tests write."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from emulator.config import Readings

from .conftest import NOW
from .scripted import CLOSED, EXPIRES, SESSION, Endpoint, error_of, never, post, respond, summary

Make = Callable[..., Endpoint]


def test_an_answer_passes_as_it_is(endpoint: Endpoint) -> None:
    endpoint.answers(
        lambda request: respond(b'{"x": "\xc3\xa4"}', headers={"X-Amzn-SageMaker-Custom-Attributes": "a=b"})
    )
    response = endpoint.invoke(b"raw \xff bytes", ContentType="application/x-mine", Accept="application/json")
    assert response["Body"] == b'{"x": "\xc3\xa4"}'
    assert response["ContentType"] == "application/json"
    assert response["CustomAttributes"] == "a=b"
    assert response["InvokedProductionVariant"] == "AllTraffic"
    assert len(response["ResponseMetadata"]["RequestId"]) == 36
    assert "NewSessionId" not in response
    [seen] = endpoint.container.seen
    assert (seen.path, seen.body) == ("/invocations", b"raw \xff bytes")


def test_a_container_sees_only_modelled_headers(endpoint: Endpoint) -> None:
    endpoint.invoke(ContentType="application/json", Accept="text/plain", CustomAttributes="t=1", InferenceId="i-1")
    [seen] = endpoint.container.seen
    assert seen.headers.keys() - {"host", "connection", "content-length"} == {
        "content-type",
        "accept",
        "x-amzn-sagemaker-custom-attributes",
        "x-amzn-sagemaker-inference-id",
    }


def test_a_caller_sees_only_modelled_headers(endpoint: Endpoint) -> None:
    endpoint.answers(lambda request: respond(b"{}", headers={"X-Mine": "1", "Set-Cookie": "a=b"}))
    _, headers, _ = post(endpoint, "/endpoints/sticky/invocations")
    assert headers.keys() == {
        "Content-Type",
        "Content-Length",
        "Date",
        "Server",
        "x-Amzn-Invoked-Production-Variant",
        "x-amzn-RequestId",
    }


def test_open_turn_close(make_endpoint: Make) -> None:
    endpoint = make_endpoint(containers=3)
    opened = endpoint.open("s-1")
    assert opened["NewSessionId"] == f"s-1; Expires={EXPIRES}"
    home = endpoint.who_served()
    for _ in range(20):
        assert "NewSessionId" not in endpoint.invoke(SessionId="s-1")
    assert endpoint.who_served() == home
    assert {each.headers[SESSION.lower()] for each in endpoint.containers[int(home[0][-1]) - 1].seen} == {
        "NEW_SESSION",
        "s-1",
    }

    endpoint.answers(lambda request: respond(b"{}", headers={CLOSED: "s-1"}))
    closed = endpoint.invoke({"requestType": "CLOSE"}, SessionId="s-1")
    assert closed["ClosedSessionId"] == "s-1"
    assert endpoint.router.sessions == {}


def test_the_other_spelling_of_the_announcement(endpoint: Endpoint) -> None:
    announce = {"X-Amzn-SageMaker-New-Session-Id": f"s-1; Expires={EXPIRES}"}
    endpoint.answers(lambda request: respond(b"{}", headers=announce))
    assert endpoint.invoke(SessionId="NEW_SESSION")["NewSessionId"] == f"s-1; Expires={EXPIRES}"
    assert endpoint.router.sessions == {"s-1": "instance-1"}


@pytest.mark.parametrize("value", ["s-1", "s-1; Expires=tomorrow"])
def test_a_malformed_announcement_opens_nothing(endpoint: Endpoint, value: str) -> None:
    endpoint.answers(lambda request: respond(b"{}", headers={SESSION: value}))
    assert "NewSessionId" not in endpoint.invoke(SessionId="NEW_SESSION")
    assert endpoint.router.sessions == {}


def test_only_an_open_opens(endpoint: Endpoint) -> None:
    endpoint.answers(lambda request: respond(b"{}", headers={SESSION: f"s-1; Expires={EXPIRES}"}))
    assert "NewSessionId" not in endpoint.invoke()
    assert endpoint.router.sessions == {}


@pytest.mark.parametrize(("reading", "alive"), [("ignored", False), ("renews", True)])
def test_a_later_expiry_on_a_turn(make_endpoint: Make, reading: str, alive: bool) -> None:
    endpoint = make_endpoint(readings=Readings(later_expiry=reading))  # type: ignore[arg-type]
    endpoint.open("s-1", "2029-01-01T00:00:00Z")
    endpoint.answers(lambda request: respond(b"{}", headers={SESSION: "s-1; Expires=2031-01-01T00:00:00Z"}))
    assert "NewSessionId" not in endpoint.invoke(SessionId="s-1")
    endpoint.now[0] = NOW + 3 * 365 * 86400
    assert ("s-1" in endpoint.router.sessions) is alive


def test_a_turn_in_an_unknown_session_is_forwarded(make_endpoint: Make) -> None:
    endpoint = make_endpoint(readings=Readings(unknown_session="forward"))
    endpoint.answers(lambda request: respond(b'{"error": {"code": "session_not_found"}}', 404))
    response = error_of(endpoint.invoke, SessionId="gone")
    assert summary(response)[:2] == (424, "ModelError")
    assert (response["OriginalStatusCode"], json.loads(response["OriginalMessage"])["error"]["code"]) == (
        404,
        "session_not_found",
    )
    assert endpoint.container.seen[0].headers[SESSION.lower()] == "gone"


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_turn_in_an_unknown_session_is_rejected(make_endpoint: Make, call: str) -> None:
    endpoint = make_endpoint(readings=Readings(unknown_session="reject"))
    status, code, message = summary(error_of(getattr(endpoint, call), SessionId="gone"))
    assert (status, code) == (400, "ValidationError")
    assert "gone" in message
    assert endpoint.container.seen == []


def test_an_expired_session_is_unknown(make_endpoint: Make) -> None:
    endpoint = make_endpoint(readings=Readings(unknown_session="reject"))
    endpoint.open("s-1")
    endpoint.invoke(SessionId="s-1")
    endpoint.now[0] = NOW + 10 * 365 * 86400
    assert summary(error_of(endpoint.invoke, SessionId="s-1"))[:2] == (400, "ValidationError")


@pytest.mark.parametrize("spelling", ["CLOSE", "CLOSE_SESSION"])
@pytest.mark.parametrize("reading", ["forward", "reject"])
def test_a_close_of_an_unknown_session(make_endpoint: Make, spelling: str, reading: str) -> None:
    endpoint = make_endpoint(readings=Readings(unknown_session=reading))  # type: ignore[arg-type]
    response = error_of(endpoint.invoke, {"requestType": spelling}, SessionId="gone")
    assert summary(response)[:2] == (400, "ValidationError")
    assert endpoint.container.seen == []


@pytest.mark.parametrize("body", [b'"CLOSE"', b'{"inputs": "CLOSE"}', b"CLOSE", b'{"requestType": ["CLOSE"]}'])
def test_a_body_that_only_looks_like_a_close(endpoint: Endpoint, body: bytes) -> None:
    endpoint.invoke(body, SessionId="gone")
    assert endpoint.container.seen[0].body == body


@pytest.mark.parametrize(("reading", "code"), [("forget", "ServiceUnavailable"), ("keep", "ModelError")])
def test_a_turn_on_an_instance_that_is_gone(make_endpoint: Make, reading: str, code: str) -> None:
    endpoint = make_endpoint(readings=Readings(lost_instance=reading))  # type: ignore[arg-type]
    endpoint.open("s-1")
    endpoint.router.remove_instance("instance-1")
    del endpoint.urls["instance-1"]
    assert summary(error_of(endpoint.invoke, SessionId="s-1"))[1] == code


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_no_instance_in_service(endpoint: Endpoint, call: str) -> None:
    endpoint.router.remove_instance("instance-1")
    assert summary(error_of(getattr(endpoint, call)))[:2] == (503, "ServiceUnavailable")


@pytest.mark.parametrize("call", ["invoke", "stream"])
@pytest.mark.parametrize("session_id", ["a_b", "a" * 257])
def test_a_bad_session_id(endpoint: Endpoint, call: str, session_id: str) -> None:
    assert summary(error_of(getattr(endpoint, call), SessionId=session_id))[:2] == (400, "ValidationError")
    assert endpoint.container.seen == []


def test_a_stream_cannot_open_a_session(endpoint: Endpoint) -> None:
    status, code, message = summary(error_of(endpoint.stream, SessionId="NEW_SESSION"))
    assert (status, code) == (400, "ValidationError")
    assert "NEW_SESSION" in message


@pytest.mark.parametrize("method", ["invoke_endpoint", "invoke_endpoint_with_response_stream"])
def test_an_unknown_endpoint(endpoint: Endpoint, method: str) -> None:
    response = error_of(getattr(endpoint.client, method), EndpointName="other", Body=b"{}")
    assert summary(response) == (400, "ValidationError", "Endpoint other of account 123456789012 not found.")


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_the_largest_body_passes_and_one_more_byte_does_not(endpoint: Endpoint, call: str) -> None:
    limit = 6 * 1024 * 1024
    endpoint.answers(lambda request: respond(b"x" * limit))
    body = getattr(endpoint, call)(b"x" * limit)["Body"]
    received = body if call == "invoke" else b"".join(event["PayloadPart"]["Bytes"] for event in body)
    assert received == b"x" * limit
    status, code, message = summary(error_of(getattr(endpoint, call), b"x" * (limit + 1)))
    assert (status, code) == (400, "ValidationError")
    assert "oversize body" in message
    assert [len(each.body) for each in endpoint.container.seen] == [limit]


@pytest.mark.parametrize("call", ["invoke", "stream"])
@pytest.mark.parametrize(("status", "kind"), [(400, "client"), (409, "client"), (500, "server"), (302, "server")])
def test_a_containers_error(endpoint: Endpoint, call: str, status: int, kind: str) -> None:
    body = '{"error": {"code": "x", "message": "grün"}}'
    endpoint.answers(lambda request: respond(body.encode(), status, {"Location": "/elsewhere"}))
    response = error_of(getattr(endpoint, call))
    assert summary(response)[:2] == (424, "ModelError")
    assert response["Error"]["Message"].startswith(f"Received {kind} error ({status}) from primary with message")
    assert (response["OriginalStatusCode"], response["OriginalMessage"]) == (status, body)
    assert response["LogStreamArn"].endswith(":log-group:/aws/sagemaker/Endpoints/sticky")
    assert response["ResponseMetadata"]["RequestId"]


def test_an_unknown_path_is_an_unknown_operation(endpoint: Endpoint) -> None:
    status, headers, _ = post(endpoint, "/endpoints/sticky/async-invocations")
    assert (status, headers["x-amzn-errortype"]) == (404, "UnknownOperationException")


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_caller_who_leaves_before_the_answer_ends_the_work(endpoint: Endpoint, call: str) -> None:
    path = "invocations" if call == "invoke" else "invocations-response-stream"
    arrived = threading.Event()

    async def answer(request: Any) -> Any:
        arrived.set()
        return await never(request)

    endpoint.answers(answer)
    connection = http.client.HTTPConnection(endpoint.url.removeprefix("http://"), timeout=30)
    connection.request("POST", f"/endpoints/sticky/{path}", b"{}")
    assert arrived.wait(20)
    connection.close()
    assert endpoint.container.left.wait(20)


def test_logs_name_the_session_and_no_word_of_a_body(endpoint: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="emulator")
    endpoint.answers(lambda request: respond(b'{"error": "my secret answer"}', 500))
    error_of(endpoint.invoke, {"inputs": "my secret prompt"}, SessionId="s-1")
    assert "session=s-1" in caplog.text
    assert "secret" not in caplog.text


def test_prefix_aware_routing_goes_by_the_bodys_beginning_and_the_callers_id(make_endpoint: Make) -> None:
    endpoint = make_endpoint(containers=3, routing_strategy="PREFIX_AWARE", prefix_length=1024)
    shared = b"x" * 1024

    def homes(*calls: tuple[bytes, dict[str, str]]) -> int:
        for each in endpoint.containers:
            each.seen.clear()
        for body, options in calls:
            endpoint.invoke(body, **options)
        return len(endpoint.who_served())

    assert homes(*((shared + b"%d" % number, {}) for number in range(10))) == 1
    assert homes(*((b"%d" % number + shared, {}) for number in range(30))) == 3
    assert homes(*((shared, {"PrefixAwareId": f"app-{number}"}) for number in range(30))) == 3


def test_prefix_aware_routing_reads_messages_on_the_openai_path(make_endpoint: Make) -> None:
    endpoint = make_endpoint(containers=3, routing_strategy="PREFIX_AWARE", prefix_length=1024)
    for number in range(10):
        messages = [{"role": "system", "content": "x" * 1024}, {"role": "user", "content": str(number)}]
        body = json.dumps({"user": str(number), "messages": messages}).encode()
        assert post(endpoint, "/endpoints/sticky/openai/v1/chat/completions", body)[0] == 200
    assert len(endpoint.who_served()) == 1
