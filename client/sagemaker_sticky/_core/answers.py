"""What comes back: an answer, and the turn in it, in either shape of body.

The shapes are SGLang's ``generation`` and an OpenAI ``chat.completion``; a stream and a plain answer read the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple

from sagemaker_sticky_protocol import SessionInfo, parse_time

from ..errors import InvalidResponse


class Answer(NamedTuple):
    """A whole answer of InvokeEndpoint."""

    body: bytes
    new_session: str | None = None
    """``ID; Expires=...`` after an open."""
    closed_session: str | None = None
    """The id after a close."""

    def json(self) -> dict[str, Any]:
        """The body, which is a JSON object.

        Raises:
            InvalidResponse: it is not.
        """
        return read_json(self.body)


class StreamAnswer(NamedTuple):
    """A begun answer of InvokeEndpointWithResponseStream."""

    events: Any
    """botocore's EventStream."""
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a turn, or of several added up."""

    prompt_tokens: int = 0
    """Tokens that the model was given, the earlier conversation included."""
    cached_tokens: int = 0
    """How many of them were found in the KV cache, so that nothing was computed for them."""
    completion_tokens: int = 0
    """Tokens that the model wrote."""

    def __add__(self, other: Usage) -> Usage:
        """The sum, figure by figure."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model."""

    text: str
    """What the model wrote; empty where it answered with tool calls alone."""
    usage: Usage
    finish_reason: str | None
    """``stop``, ``length``, ``tool_calls`` ... as the engine names it."""
    session: SessionInfo | None
    """The session after this turn; None outside a session."""
    message: dict[str, Any]
    """The answer as an OpenAI message, for a transcript."""
    raw: dict[str, Any]
    """The whole body; of a stream, its last chunk."""


def read_json(body: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    Raises:
        InvalidResponse: it holds something else. The message shows none of it: it may be somebody's conversation.
    """
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise InvalidResponse(f"the answer, {len(body)} bytes, is not JSON") from error
    if not isinstance(answer, dict):
        raise InvalidResponse(f"the answer is a JSON {type(answer).__name__}, not an object")
    return answer


def read_turn(body: dict[str, Any]) -> Turn:
    """The turn in the body of a plain answer.

    Raises:
        InvalidResponse: a field of the contract is missing.
    """
    try:
        if "generation" in body:
            generation = body["generation"]
            message = {"role": "assistant", "content": str(generation["text"])}
            usage, finish_reason = read_meta_info(generation["meta_info"])
        else:
            choice = body["choices"][0]
            message, finish_reason = dict(choice["message"]), choice.get("finish_reason")
            usage = read_openai_usage(body["usage"])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise _lacks(error) from error
    return Turn(
        text=message.get("content") or "",
        usage=usage,
        finish_reason=finish_reason,
        session=read_session(body),
        message=message,
        raw=body,
    )


def read_session(body: Mapping[str, Any]) -> SessionInfo | None:
    """The ``session`` of a body, or None where it has none.

    Raises:
        InvalidResponse: it lacks a field.
    """
    if body.get("session") is None:
        return None
    try:
        return SessionInfo.from_dict(body["session"])
    except (TypeError, ValueError) as error:
        raise _lacks(error) from error


def read_meta_info(meta_info: Mapping[str, Any]) -> tuple[Usage, str | None]:
    """Usage and finish reason of SGLang's ``meta_info``; a KeyError or TypeError where they are not there."""
    reason = meta_info["finish_reason"]
    return (
        Usage(
            int(meta_info["prompt_tokens"]),
            int(meta_info["cached_tokens"]),
            int(meta_info["completion_tokens"]),
        ),
        reason["type"] if isinstance(reason, Mapping) else reason,
    )


def read_openai_usage(usage: Mapping[str, Any]) -> Usage:
    """OpenAI's ``usage``; a KeyError or TypeError where its figures are not there."""
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage["prompt_tokens"]), int(details.get("cached_tokens") or 0), int(usage.get("completion_tokens") or 0)
    )


def read_expiry(text: str) -> datetime:
    """An expiry as SageMaker writes it, in UTC.

    Raises:
        InvalidResponse: it has another form.
    """
    try:
        return datetime.fromtimestamp(parse_time(text), tz=timezone.utc)
    except ValueError as error:
        raise InvalidResponse(f"the session's expiry is not a time: {text!r}") from error


def _lacks(error: Exception) -> InvalidResponse:
    return InvalidResponse(f"the answer is not of this contract: {type(error).__name__}: {error}")
