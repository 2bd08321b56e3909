"""Lower errors to this package's: the one place that decides.

A container's error arrives as botocore's ModelError, whose OriginalMessage holds ``{"error": {"code", "message"}}``;
a router's or AWS's as another ClientError; a broken connection as a BotoCoreError or, inside a stream, as a bare
urllib3 error. The lower error stays as the ``cause``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import botocore.exceptions as boto
import urllib3.exceptions
from botocore.eventstream import ParserError
from botocore.parsers import ResponseParserError
from sagemaker_sticky_protocol import NEW_SESSION, ErrorCode

from ..errors import (
    AccessDenied,
    ConnectionFailed,
    Draining,
    EndpointFailed,
    EngineUnavailable,
    InvalidRequest,
    InvalidResponse,
    NotConfigured,
    RequestTooLarge,
    SessionBusy,
    SessionConflict,
    SessionLost,
    StickyError,
    StreamInterrupted,
    TimedOut,
    TooManySessions,
    Unavailable,
)

CONTAINER_ERRORS: dict[str, type[StickyError]] = {
    ErrorCode.INVALID_REQUEST.value: InvalidRequest,
    ErrorCode.SESSION_NOT_FOUND.value: SessionLost,
    ErrorCode.SESSION_EXPIRED.value: SessionLost,
    ErrorCode.SESSION_CONFLICT.value: SessionConflict,
    ErrorCode.SESSION_BUSY.value: SessionBusy,
    ErrorCode.REQUEST_TOO_LARGE.value: RequestTooLarge,
    ErrorCode.TOO_MANY_SESSIONS.value: TooManySessions,
    ErrorCode.DRAINING.value: Draining,
    ErrorCode.ENGINE_UNAVAILABLE.value: EngineUnavailable,
    ErrorCode.INTERNAL.value: EndpointFailed,
}
AWS_ERRORS: dict[str, type[StickyError]] = {
    "ValidationError": InvalidRequest,
    "ModelNotReadyException": Unavailable,
    "ServiceUnavailable": Unavailable,
    "ThrottlingException": Unavailable,
    "InternalFailure": EndpointFailed,
    "InternalDependencyException": EndpointFailed,
    "ModelStreamError": StreamInterrupted,
    "InternalStreamFailure": StreamInterrupted,
    "AccessDeniedException": AccessDenied,
    "UnrecognizedClientException": AccessDenied,
    "InvalidSignatureException": AccessDenied,
    "ExpiredTokenException": AccessDenied,
}
STREAM_ERROR_CODES = ("ModelInvocationTimeExceeded", "StreamBroken")
"""``ErrorCode`` of ModelStreamError, from SageMaker's API reference (API_runtime_ResponseStream)."""
_OUT_OF_TIME = "allotted time"
"""In SageMaker's message for a stream that ran out of time, as users report it (sagemaker-python-sdk issue 1119)."""

_STREAM_INSTEAD = "(an answer may take 60 s, a stream some minutes: stream what is long)"

_NO_CREDENTIALS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.TokenRetrievalError,
    boto.NoAuthTokenError,
    boto.SSOError,
    boto.UnauthorizedSSOTokenError,
)
_NO_CONNECTION = (
    boto.ConnectionError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    urllib3.exceptions.HTTPError,
)
LOWER_ERRORS = (boto.ClientError, boto.BotoCoreError, ResponseParserError, urllib3.exceptions.HTTPError)
"""What a call through boto3 may raise; :func:`error_from` takes any of them."""
STREAM_BREAKS = (*LOWER_ERRORS, ParserError, OSError, StreamInterrupted)
"""What reading a stream may raise; ParserError is a frame with a wrong checksum."""


@contextmanager
def mapped(*, session_id: str | None = None, endpoint_name: str = "") -> Iterator[None]:
    """Raise boto3's errors of the block as this package's; see :func:`error_from`."""
    try:
        yield
    except LOWER_ERRORS as error:
        raise error_from(error, session_id=session_id, endpoint_name=endpoint_name) from error


def error_from(error: Exception, *, session_id: str | None = None, endpoint_name: str = "") -> StickyError:
    """This package's error for a lower one.

    Args:
        error: One of LOWER_ERRORS.
        session_id: The session of the call. What SageMaker's router answers for a session that it does not know is not
            documented; a ValidationError that speaks of a session, on a call in one, is taken to say so. A container
            that gave no answer at all, before its time was up, is taken to be gone with its sessions.
        endpoint_name: Taken out of a router's message before it is read: a name may well contain "session".
    """
    if isinstance(error, boto.ClientError):
        in_session = session_id not in (None, NEW_SESSION)
        about_session = in_session and "session" in _message(error).replace(endpoint_name, "").lower()
        return _from_answer(error, in_session=in_session, about_session=about_session)
    code = type(error).__name__
    if isinstance(error, (boto.ReadTimeoutError, urllib3.exceptions.ReadTimeoutError)):
        return TimedOut(f"no answer in time: {error} {_STREAM_INSTEAD}", code=code)
    if isinstance(error, _NO_CONNECTION):
        return ConnectionFailed(str(error), code=code)
    if isinstance(error, _NO_CREDENTIALS):
        return AccessDenied(str(error), code=code)
    if isinstance(error, ResponseParserError):
        return InvalidResponse(str(error), code=code)
    if isinstance(error, boto.ParamValidationError):
        return InvalidRequest(str(error), code=code)
    return NotConfigured(str(error), code=code)


def error_of_container(body: Any) -> tuple[type[StickyError], str, str] | None:
    """Class, code and message of a container's error body, parsed; None where it is not one."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return None
    code = error["code"]
    return CONTAINER_ERRORS.get(code, EndpointFailed), code, str(error.get("message", code))


def stream_error_from(error: Exception, *, text: str, request_id: str | None) -> StreamInterrupted:
    """The error for what broke a stream that had begun: botocore's, urllib3's or the socket's."""
    if isinstance(error, boto.ClientError):
        return StreamInterrupted(_message(error), text=text, code=_stream_code(error), request_id=request_id)
    return StreamInterrupted(str(error), text=text, code=type(error).__name__, request_id=request_id)


def _stream_code(error: boto.ClientError) -> str:
    """The error's code; of a ModelStreamError its ErrorCode where that is known: inside a stream botocore drops it."""
    code = str(error.response.get("Error", {}).get("Code") or type(error).__name__)
    texts = (str(error.response.get("ErrorCode", "")), _message(error))
    if code == "ModelStreamError" and _OUT_OF_TIME in texts[1]:
        return STREAM_ERROR_CODES[0]
    return next((known for known in STREAM_ERROR_CODES for text in texts if known in text), code)


def _from_answer(error: boto.ClientError, *, in_session: bool, about_session: bool) -> StickyError:
    metadata = error.response.get("ResponseMetadata", {})
    status, request_id = metadata.get("HTTPStatusCode"), metadata.get("RequestId")
    code = error.response.get("Error", {}).get("Code") or type(error).__name__
    if code == "ModelError":
        return _from_container(error, in_session=in_session, request_id=request_id)
    if code == "ValidationError" and about_session:
        return SessionLost(_message(error), code=code, status=status, request_id=request_id)
    kind = AWS_ERRORS.get(code) or _kind_of_status(status)
    return kind(_message(error), code=_stream_code(error), status=status, request_id=request_id)


def _from_container(error: boto.ClientError, *, in_session: bool, request_id: str | None) -> StickyError:
    """ModelError: the container's own error where OriginalMessage is one, else what its status says."""
    status = error.response.get("OriginalStatusCode")
    try:
        known = error_of_container(json.loads(error.response.get("OriginalMessage", "")))
    except ValueError:
        known = None
    if known is not None:
        known_kind, code, message = known
        return known_kind(message, code=code, status=status, request_id=request_id)
    # No answer within 60 s is "Received server error (0) from primary with message "Your invocation timed out ...".
    log = error.response.get("LogStreamArn")
    message = _message(error) + (f" (log: {log})" if log else "")
    kind: type[StickyError] = EndpointFailed
    if status == 0 and "timed out" in _message(error):
        kind, message = TimedOut, f"{message} {_STREAM_INSTEAD}"
    elif status == 0 and in_session:
        kind = SessionLost
    return kind(message, code="ModelError", status=status or None, request_id=request_id)


def _message(error: boto.ClientError) -> str:
    """AWS's message, without botocore's words around it."""
    return str(error.response.get("Error", {}).get("Message") or error)


def _kind_of_status(status: int | None) -> type[StickyError]:
    """For a code that this version does not know."""
    if status in (401, 403):
        return AccessDenied
    if status in (429, 503):
        return Unavailable
    return InvalidRequest if status is not None and 400 <= status < 500 else EndpointFailed
