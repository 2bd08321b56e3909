"""The wire contract between the client, the emulator and the container. Standard library only.

The image copies this one file and the client's wheel carries it, so that both sides always mean the same thing.
Sources: SageMaker's "Stateful sessions" and ``InvokeEndpoint`` API reference for headers, pattern and limits;
the 2025 AWS sticky-session sample for the request types and ``extSessionID``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import get_close_matches
from enum import Enum
from typing import Any

SESSION_ID_HEADER = "X-Amzn-SageMaker-Session-Id"
"""Request: ``NEW_SESSION`` or an id. Response of an open, as the container sends it: ``ID; Expires=...Z``."""
NEW_SESSION_ID_HEADER = "X-Amzn-SageMaker-New-Session-Id"
"""Response of an open, as SageMaker's router passes it on to the caller (botocore: ``NewSessionId``)."""
CLOSED_SESSION_ID_HEADER = "X-Amzn-SageMaker-Closed-Session-Id"
"""Response of a close, from the container and from the router (botocore: ``ClosedSessionId``)."""
CUSTOM_ATTRIBUTES_HEADER = "X-Amzn-SageMaker-Custom-Attributes"
"""At most 1024 ASCII characters; passes the router both ways."""

NEW_SESSION = "NEW_SESSION"
"""The value of the session header that asks for a session, and the request type of the same name."""

MAX_SESSION_ID_LENGTH = 256
MAX_BODY_BYTES = 6 * 1024 * 1024
"""Largest request or response body that SageMaker's API model allows, in bytes."""

SSE_DONE = "[DONE]"
"""The data of the line that ends a stream."""

_SESSION_ID = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9])*")
_EXPIRES = "%Y-%m-%dT%H:%M:%SZ"


class RequestType(str, Enum):
    """What a request with a session asks for: the body's ``requestType``."""

    OPEN = NEW_SESSION
    TURN = "SESSION"
    CLOSE = "CLOSE"
    CLOSE_SESSION = "CLOSE_SESSION"
    """The 2025 sample's spelling of CLOSE."""


class ErrorCode(str, Enum):
    """``error.code`` of an error body: what a program may rely on. Its message is for people."""

    INVALID_REQUEST = "invalid_request"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_CONFLICT = "session_conflict"
    SESSION_BUSY = "session_busy"
    SESSION_EXPIRED = "session_expired"
    REQUEST_TOO_LARGE = "request_too_large"
    TOO_MANY_SESSIONS = "too_many_sessions"
    DRAINING = "draining"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    INTERNAL = "internal"

    @property
    def status(self) -> int:
        """The HTTP status that the container answers with this code."""
        return _STATUS[self]


_STATUS = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.SESSION_NOT_FOUND: 404,
    ErrorCode.SESSION_CONFLICT: 409,
    ErrorCode.SESSION_BUSY: 409,
    ErrorCode.SESSION_EXPIRED: 410,
    ErrorCode.REQUEST_TOO_LARGE: 413,
    ErrorCode.TOO_MANY_SESSIONS: 429,
    ErrorCode.DRAINING: 503,
    ErrorCode.ENGINE_UNAVAILABLE: 503,
    ErrorCode.INTERNAL: 500,
}


@dataclass(frozen=True)
class SessionInfo:
    """The ``session`` object that every answer inside a session carries."""

    id: str
    expires_at: str
    """RFC 3339, UTC, whole seconds."""
    turn: int
    """Turns answered so far; 0 after an open."""
    context_tokens: int
    """Tokens that the session holds, the last answer included."""
    served_by: str
    """The instance, as the container knows it."""

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a JSON body."""
        return {
            "id": self.id,
            "expires_at": self.expires_at,
            "turn": self.turn,
            "context_tokens": self.context_tokens,
            "served_by": self.served_by,
        }

    @classmethod
    def from_dict(cls, body: dict[str, Any]) -> SessionInfo:
        """From a JSON body; fields that this version does not know are ignored.

        Raises:
            ValueError: a field is missing.
        """
        try:
            return cls(**{name: body[name] for name in cls.__dataclass_fields__})
        except KeyError as missing:
            raise ValueError(f"'session' lacks the field {missing}") from None


def is_session_id(value: object) -> bool:
    """Whether SageMaker's API takes ``value`` as the id of an existing session."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_SESSION_ID_LENGTH
        and value != NEW_SESSION
        and _SESSION_ID.fullmatch(value) is not None
    )


def describe_session_id_rule() -> str:
    """The rule that :func:`is_session_id` checks, in words for an error message."""
    return "1 to 256 letters, digits and inner hyphens, starting and ending with a letter or digit"


def format_time(when: float) -> str:
    """A Unix time in seconds as RFC 3339 in UTC, whole seconds (rounded down)."""
    return datetime.fromtimestamp(when, tz=timezone.utc).strftime(_EXPIRES)


def parse_time(text: str) -> float:
    """The Unix time in seconds of an RFC 3339 time as :func:`format_time` writes it.

    Raises:
        ValueError: ``text`` has another form.
    """
    return datetime.strptime(text, _EXPIRES).replace(tzinfo=timezone.utc).timestamp()


def format_new_session(session_id: str, expires_at: str) -> str:
    """The value of the header with which a container announces a session."""
    return f"{session_id}; Expires={expires_at}"


def parse_new_session(value: str) -> tuple[str, str | None]:
    """The id and the expiry (None where absent) of the header that announces a session."""
    session_id, _, attributes = value.partition(";")
    for attribute in attributes.split(";"):
        name, _, content = attribute.strip().partition("=")
        if name.lower() == "expires":
            return session_id.strip(), content.strip()
    return session_id.strip(), None


def error_body(code: ErrorCode, message: str) -> dict[str, Any]:
    """The JSON body of an error."""
    return {"error": {"code": code.value, "message": message}}


def nearest(name: object, known: Iterable[object]) -> str:
    """What an error message adds to an unknown ``name``: `` (did you mean 'x'?)``, or nothing where none is close."""
    close = get_close_matches(str(name), sorted(str(each) for each in known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
