"""What goes out: each kind of request as a :class:`Call`, checked before it is sent.

Pure: no I/O. botocore checks neither patterns nor lengths, so it happens here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sagemaker_sticky_protocol import (
    MAX_BODY_BYTES,
    NEW_SESSION,
    ErrorCode,
    RequestType,
    describe_session_id_rule,
    is_session_id,
)

from ._errors import InvalidRequest, RequestTooLarge

Message = Mapping[str, Any]
"""An OpenAI chat message: ``{"role": ..., "content": ...}``."""
Content = str | Sequence[Message]
"""What a turn says: text, or messages."""

RESERVED = frozenset(
    {
        "requestType",
        "extSessionID",
        "inputs",
        "prompt",
        "messages",
        "parameters",
        "sampling_params",
        "stream",
        "stream_options",
        "rewind",
    }
)
"""Body fields that this package sets; a parameter of that name would change what is asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the endpoint."""

    body: bytes
    session_id: str | None = None
    """The session header: an id, ``NEW_SESSION``, or None outside a session."""


def open_call(*, session_id: str | None = None, messages: Sequence[Message] = ()) -> Call:
    """Open a session, under a proposed id if given, holding ``messages`` from the start."""
    body: dict[str, Any] = {"requestType": RequestType.OPEN.value}
    if session_id is not None:
        if not is_session_id(session_id):
            raise _invalid(f"'session_id' should be {describe_session_id_rule()}, got {session_id!r}")
        body["extSessionID"] = session_id
    if messages:
        body["messages"] = _messages(messages)
    return Call(_encode(body), NEW_SESSION)


def turn_call(
    content: Content, parameters: Mapping[str, Any], *, session_id: str | None = None, stream: bool = False
) -> Call:
    """One turn: in a session, or on its own with ``session_id`` None.

    Text goes as ``inputs`` with ``parameters`` beside it; messages go with OpenAI's fields at the top.
    """
    if taken := sorted(RESERVED & parameters.keys()):
        raise _invalid(f"not a parameter, this package sets it: {', '.join(map(repr, taken))}")
    body: dict[str, Any] = {} if session_id is None else {"requestType": RequestType.TURN.value}
    if isinstance(content, str):
        if not content:
            raise _invalid("the text is empty")
        body["inputs"] = content
        if parameters:
            body["parameters"] = dict(parameters)
    else:
        body |= {"messages": _messages(content), **parameters}
    if stream:
        body["stream"] = True
        if "messages" in body:
            body["stream_options"] = {"include_usage": True}  # OpenAI's streams are without it unless asked
    return Call(_encode(body), session_id)


def close_call(session_id: str) -> Call:
    """Close a session."""
    return Call(_encode({"requestType": RequestType.CLOSE.value}), session_id)


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code=ErrorCode.INVALID_REQUEST.value)


def _messages(messages: object) -> list[Message]:
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise _invalid(f"should be text or a list of messages, got {type(messages).__name__}")
    if not messages:
        raise _invalid("the list of messages is empty")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or "role" not in message:
            raise _invalid(f"message {index} should be a mapping with a 'role', got {type(message).__name__}")
    return [dict(message) for message in messages]


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        encoded = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise _invalid(f"the request cannot be written as JSON: {error}") from error
    if len(encoded) > MAX_BODY_BYTES:
        over = len(encoded) - MAX_BODY_BYTES
        raise RequestTooLarge(
            f"the request has {len(encoded):,} bytes, {over:,} more than the {MAX_BODY_BYTES:,} that SageMaker takes; "
            "send large content by reference (a URL)",
            code=ErrorCode.REQUEST_TOO_LARGE.value,
        )
    return encoded
