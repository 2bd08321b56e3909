"""What goes out: each kind of request as a :class:`Call`, checked before it is sent.

Pure: no I/O. botocore checks neither patterns nor lengths, so it happens here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sagemaker_sticky_protocol import (
    MAX_BODY_BYTES,
    NEW_SESSION,
    ErrorCode,
    RequestType,
    describe_session_id_rule,
    is_session_id,
)

from ..errors import InvalidRequest, RequestTooLarge

Message = Mapping[str, Any]
"""An OpenAI chat message: ``{"role": ..., "content": ...}``."""
Content = str | Sequence[Message]
"""What a turn says: text, or messages."""

RESERVED = frozenset(
    {
        "requestType",
        "extSessionID",
        "answerPrefix",
        "ttlSeconds",
        "inputs",
        "prompt",
        "messages",
        "parameters",
        "sampling_params",
        "stream",
        "stream_options",
        "rewind",
        "turn",
    }
)
"""Body fields that this package sets; a parameter of that name would change what is asked for."""

_write_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Call(NamedTuple):
    """One request to the endpoint."""

    body: bytes
    session_id: str | None = None
    """The session header: an id, ``NEW_SESSION``, or None outside a session."""
    stream: bool = False
    """Whether the answer is a stream: InvokeEndpointWithResponseStream."""


def open_call(
    *, session_id: str | None = None, messages: Sequence[Message] = (), ttl_seconds: float | None = None
) -> Call:
    """Open a session, under a proposed id if given, holding ``messages`` from the start.

    ``ttl_seconds`` asks for an earlier end than the container's own.
    """
    body: dict[str, Any] = {"requestType": RequestType.OPEN.value}
    if session_id is not None:
        body["extSessionID"] = checked_session_id(session_id)
    if messages:
        body["messages"] = _messages(messages)
    if ttl_seconds is not None:
        if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, (int, float)) or not ttl_seconds >= 1:
            raise invalid(f"'ttl' should be a number of seconds from 1, got {ttl_seconds!r}")
        body["ttlSeconds"] = ttl_seconds
    return Call(_encode(body), NEW_SESSION)


def turn_call(
    content: Content,
    parameters: Mapping[str, Any],
    *,
    session_id: str | None = None,
    stream: bool = False,
    rewind: int | None = None,
    turn: int | None = None,
    answer_prefix: str = "",
) -> Call:
    """One turn: in a session, or on its own with ``session_id`` None.

    Text goes as ``inputs`` with ``parameters`` beside it; messages go with OpenAI's fields at the top. ``rewind``
    drops what the session holds after its first so many turns; ``turn`` is the number that this turn is to have. A
    whole conversation (``history="full"``) stands for itself and goes with neither. ``answer_prefix`` is how the answer
    begins, of which only what follows is wanted.
    """
    if taken := sorted(RESERVED & parameters.keys()):
        raise invalid(f"not a parameter, this package sets it: {', '.join(map(repr, taken))}")
    body: dict[str, Any] = {} if session_id is None else {"requestType": RequestType.TURN.value}
    if isinstance(content, str):
        if not content:
            raise invalid("the text is empty")
        body["inputs"] = content
        if parameters:
            body["parameters"] = dict(parameters)
    else:
        body |= {"messages": _messages(content), **parameters}
    if body.get("history") != "full":
        numbers = {"rewind": rewind, "turn": turn}
        body |= {name: number for name, number in numbers.items() if number is not None}
    if answer_prefix:
        body["answerPrefix"] = answer_prefix
    if stream:
        body["stream"] = True
        if "messages" in body:
            body["stream_options"] = {"include_usage": True}  # OpenAI's streams are without it unless asked
    return Call(_encode(body), session_id, stream)


def close_call(session_id: str) -> Call:
    """Close a session."""
    return Call(_encode({"requestType": RequestType.CLOSE.value}), session_id)


def checked_session_id(session_id: str) -> str:
    """``session_id`` itself, if SageMaker takes it.

    Raises:
        InvalidRequest: it breaks the pattern.
    """
    if not is_session_id(session_id):
        raise invalid(f"'session_id' should be {describe_session_id_rule()}, got {session_id!r}")
    return session_id


def invalid(message: str) -> InvalidRequest:
    """The error for a request that is wrong before it is sent."""
    return InvalidRequest(message, code=ErrorCode.INVALID_REQUEST.value)


def _messages(messages: object) -> list[Message]:
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise invalid(f"should be text or a list of messages, got {type(messages).__name__}")
    if not messages:
        raise invalid("the list of messages is empty")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or "role" not in message:
            raise invalid(f"message {index} should be a mapping with a 'role', got {type(message).__name__}")
    return [dict(message) for message in messages]


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        encoded = _write_json(body).encode()
    except (TypeError, ValueError) as error:
        raise invalid(f"the request cannot be written as JSON: {error}") from error
    if len(encoded) > MAX_BODY_BYTES:
        over = len(encoded) - MAX_BODY_BYTES
        raise RequestTooLarge(
            f"the request has {len(encoded):,} bytes, {over:,} more than the {MAX_BODY_BYTES:,} that SageMaker takes; "
            "send large content by reference (a URL), or say less in one turn",
            code=ErrorCode.REQUEST_TOO_LARGE.value,
        )
    return encoded
