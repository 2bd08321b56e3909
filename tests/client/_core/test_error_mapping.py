from __future__ import annotations

import inspect
from typing import Any

import boto3
import botocore.exceptions as boto
import pytest
import sagemaker_sticky as sticky
import urllib3.exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError
from sagemaker_sticky import StickyClient, StickyError
from sagemaker_sticky._core.error_mapping import AWS_ERRORS, CONTAINER_ERRORS, error_from
from sagemaker_sticky_protocol import ErrorCode

from tests.client.wire import REQUEST_ID, Reply, Wire, aws_error, container_error, generated, model_error, opened

TIMED_OUT = "Your invocation timed out while waiting for a response from container primary. Review ..."


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_REQUEST, sticky.InvalidRequest),
        (ErrorCode.SESSION_NOT_FOUND, sticky.SessionLost),
        (ErrorCode.SESSION_EXPIRED, sticky.SessionLost),
        (ErrorCode.SESSION_CONFLICT, sticky.SessionConflict),
        (ErrorCode.SESSION_BUSY, sticky.SessionBusy),
        (ErrorCode.REQUEST_TOO_LARGE, sticky.RequestTooLarge),
        (ErrorCode.TOO_MANY_SESSIONS, sticky.TooManySessions),
        (ErrorCode.DRAINING, sticky.Draining),
        (ErrorCode.ENGINE_UNAVAILABLE, sticky.EngineUnavailable),
        (ErrorCode.INTERNAL, sticky.EndpointFailed),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_a_containers_error_has_its_class(
    client: StickyClient, wire: Wire, code: ErrorCode, kind: type[StickyError], streams: bool
) -> None:
    wire.replies.append(container_error(code, "what went wrong"))

    with pytest.raises(StickyError) as caught:
        (client.stream if streams else client.invoke)("hello")

    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.status) == (code.value, code.status)
    assert caught.value.request_id == REQUEST_ID
    assert str(caught.value) == "what went wrong"
    assert isinstance(caught.value.cause, boto.ClientError)


def test_every_code_of_the_contract_is_mapped() -> None:
    assert CONTAINER_ERRORS.keys() == {code.value for code in ErrorCode}


def test_every_error_of_the_service_model_is_mapped(runtime: Any) -> None:
    model = runtime.meta.service_model
    names = {
        shape.name
        for operation in ("InvokeEndpoint", "InvokeEndpointWithResponseStream")
        for shape in model.operation_model(operation).error_shapes
    }

    assert names - {"ModelError"} <= AWS_ERRORS.keys()


@pytest.mark.parametrize(
    ("reply", "kind", "code", "status"),
    [
        (aws_error("ValidationError", 400, "Endpoint house of account 1 not found."), "InvalidRequest", None, 400),
        (aws_error("ModelNotReadyException", 429, "loading"), "Unavailable", None, 429),
        (aws_error("ServiceUnavailable", 503, "busy"), "Unavailable", None, 503),
        (aws_error("ThrottlingException", 400, "Rate exceeded"), "Unavailable", None, 400),
        (aws_error("InternalFailure", 500, "oh"), "EndpointFailed", None, 500),
        (aws_error("InternalDependencyException", 530, "oh"), "EndpointFailed", None, 530),
        (aws_error("AccessDeniedException", 403, "no"), "AccessDenied", None, 403),
        (aws_error("ExpiredTokenException", 403, "no"), "AccessDenied", None, 403),
        (aws_error("NewKindOfDenial", 403, "no"), "AccessDenied", None, 403),
        (aws_error("NewKindOfLimit", 429, "no"), "Unavailable", None, 429),
        (aws_error("NewKindOfMistake", 400, "no"), "InvalidRequest", None, 400),
        (aws_error("NewKindOfFailure", 500, "no"), "EndpointFailed", None, 500),
        (aws_error("ModelStreamError", 400, "x", ErrorCode="StreamBroken"), "StreamInterrupted", "StreamBroken", 400),
        (model_error(500, "<html>Traceback"), "EndpointFailed", "ModelError", 500),
        (model_error(400, '{"error": {"code": 400, "message": "x"}}'), "EndpointFailed", "ModelError", 400),
        (model_error(418, '{"error": {"code": "teapot", "message": "x"}}'), "EndpointFailed", "teapot", 418),
        (model_error(0, TIMED_OUT, f'Received server error (0) from primary with message "{TIMED_OUT}"'),
         "TimedOut", "ModelError", None),
        (model_error(0, "", "could not get a response"), "EndpointFailed", "ModelError", None),
    ],
)  # fmt: skip
def test_an_answer_of_aws_has_its_class(
    client: StickyClient, wire: Wire, reply: Reply, kind: str, code: str | None, status: int | None
) -> None:
    wire.replies.append(reply)

    with pytest.raises(StickyError) as caught:
        client.stream("hello")

    assert type(caught.value).__name__ == kind
    assert caught.value.code == (code or reply.headers["x-amzn-errortype"])
    assert caught.value.status == status
    assert caught.value.request_id == REQUEST_ID
    assert "An error occurred" not in str(caught.value), "botocore's wording hides AWS's"


def test_the_containers_log_is_named_where_its_error_says_nothing(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(model_error(500, "Traceback", LogStreamArn="arn:aws:logs:somewhere"))

    with pytest.raises(sticky.EndpointFailed, match="arn:aws:logs:somewhere"):
        client.invoke("hello")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Session s-1 does not exist.", sticky.SessionLost),
        ("No such session", sticky.SessionLost),
        ("Endpoint session-house of account 1 not found.", sticky.InvalidRequest),
    ],
)
def test_a_validation_error_about_the_session_means_that_it_is_lost(
    wire: Wire, runtime: Any, message: str, kind: type[StickyError]
) -> None:
    wire.replies += [opened(), aws_error("ValidationError", 400, message), generated("closed")]

    client = StickyClient("session-house", runtime=runtime)
    with client.session(recover=False) as session, pytest.raises(StickyError) as caught:
        session.invoke("hello")

    assert type(caught.value) is kind


def test_an_instance_that_gives_no_answer_is_gone_with_its_sessions(client: StickyClient, wire: Wire) -> None:
    wire.replies += [opened(), model_error(0, "", "could not get a response"), generated("closed")]

    with client.session(recover=False) as session, pytest.raises(sticky.SessionLost):
        session.invoke("hello")


@pytest.mark.parametrize(
    "reply", [aws_error("ValidationError", 400, "Value at 'sessionId' failed"), model_error(0, "", "no response")]
)
def test_an_open_never_loses_a_session(client: StickyClient, wire: Wire, reply: Reply) -> None:
    wire.replies.append(reply)

    with pytest.raises(StickyError) as caught, client.session():
        pass

    assert not isinstance(caught.value, sticky.SessionLost)


def test_without_a_session_a_validation_error_is_never_about_one(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(aws_error("ValidationError", 400, "Value at 'sessionId' failed"))

    with pytest.raises(sticky.InvalidRequest):
        client.invoke("hello")


def lower_errors() -> list[type[boto.BotoCoreError]]:
    classes = [each for _, each in inspect.getmembers(boto, inspect.isclass)]
    return [each for each in classes if issubclass(each, boto.BotoCoreError)]


class Anything(dict[str, str]):
    """Fills any placeholder of a botocore message."""

    def __missing__(self, name: str) -> str:
        return name


@pytest.mark.parametrize("kind", lower_errors(), ids=lambda kind: kind.__name__)
def test_every_error_of_botocore_is_mapped(kind: type[boto.BotoCoreError]) -> None:
    lower = kind.__new__(kind)
    Exception.__init__(lower, kind.fmt.format_map(Anything()))

    error = error_from(lower)

    assert type(error) not in (StickyError, sticky.SessionError)
    assert error.code == kind.__name__
    assert (error.status, error.request_id) == (None, None)


@pytest.mark.parametrize(
    ("lower", "kind"),
    [
        (boto.ReadTimeoutError(endpoint_url="x"), sticky.TimedOut),
        (boto.ConnectTimeoutError(endpoint_url="x"), sticky.ConnectionFailed),
        (boto.EndpointConnectionError(endpoint_url="x"), sticky.ConnectionFailed),
        (boto.ConnectionClosedError(endpoint_url="x"), sticky.ConnectionFailed),
        (boto.SSLError(endpoint_url="x", error="y"), sticky.ConnectionFailed),
        (boto.ProxyConnectionError(proxy_url="x"), sticky.ConnectionFailed),
        (boto.ResponseStreamingError(error="x"), sticky.ConnectionFailed),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), sticky.ConnectionFailed),
        (urllib3.exceptions.ProtocolError("x"), sticky.ConnectionFailed),
        (urllib3.exceptions.ReadTimeoutError(None, "x", "y"), sticky.TimedOut),  # type: ignore[arg-type]
        (boto.NoCredentialsError(), sticky.AccessDenied),
        (boto.TokenRetrievalError(provider="x", error_msg="y"), sticky.AccessDenied),
        (boto.ParamValidationError(report="x"), sticky.InvalidRequest),
        (ResponseParserError("x"), sticky.InvalidResponse),
        (boto.NoRegionError(), sticky.NotConfigured),
        (boto.ProfileNotFound(profile="x"), sticky.NotConfigured),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_lower_errors_have_their_class(lower: Exception, kind: type[StickyError]) -> None:
    assert type(error_from(lower)) is kind


def test_a_connection_that_breaks_inside_an_answer_is_mapped(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(Reply(body=b"", headers={"Content-Length": "10"}))

    with pytest.raises(sticky.ConnectionFailed) as caught:
        client.invoke("hello")

    assert isinstance(caught.value.cause, boto.BotoCoreError)


def test_an_endpoint_that_does_not_listen_is_a_failed_connection(
    credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(sticky.ConnectionFailed) as caught:
        StickyClient("house").invoke("hello")

    assert caught.value.code == "EndpointConnectionError"


def test_no_credentials_is_access_denied(monkeypatch: pytest.MonkeyPatch, endpoint_url: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint_url)

    with pytest.raises(sticky.AccessDenied, match="credentials"):
        StickyClient("house", region_name="eu-west-1").invoke("hello")


def test_no_region_is_not_configured() -> None:
    with pytest.raises(sticky.NotConfigured, match="region"):
        StickyClient("house")


def test_a_profile_that_does_not_exist_is_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    with pytest.raises(sticky.NotConfigured, match="nobody"):
        StickyClient("house", region_name="eu-west-1")


def test_a_read_timeout_is_timed_out_and_not_repeated(wire: Wire, credentials: None) -> None:
    config = Config(read_timeout=0.05, retries={"total_max_attempts": 1})
    runtime = boto3.session.Session().client("sagemaker-runtime", config=config)
    wire.replies.append(Reply(frames=[], ending="held"))

    with pytest.raises(sticky.TimedOut) as caught:
        StickyClient("house", runtime=runtime).invoke("hello")

    assert wire.hung_up.wait(10)
    runtime.close()
    assert caught.value.code == "ReadTimeoutError"
    assert len(wire.requests) == 1
