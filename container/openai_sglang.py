"""OpenAI's objects by SGLang's own code: its request models, chat template, tool-call and reasoning parsers.

SGLang's serving classes are asked in this process; a session's transcript takes the place of what they would render.
Their names are SGLang's private ones: they are pinned, and the tests run on every version that is supported.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import orjson
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ValidationError
from sagemaker_sticky_protocol import SSE_DONE, ErrorCode

from container.engine import Event, OpenAICall, Usage
from container.errors import ServerError, invalid, nearest, shown


class Recorder:
    """Stands where SGLang's OpenAI side expects the tokenizer manager: puts a transcript in, writes tokens down."""

    def __init__(self, manager: Any, call: OpenAICall) -> None:
        self._manager = manager
        self._call = call
        self._ids: list[int] = []
        self._running: AsyncGenerator[dict[str, Any], None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    async def generate_request(self, request: Any, http: Any = None) -> AsyncGenerator[dict[str, Any], None]:
        """What SGLang's serving classes call to generate."""
        if self._call.input_ids is not None:
            request.text, request.input_ids = None, self._call.input_ids.tolist()
            request.session_id, request.routed_dp_rank = self._call.session_id, self._call.rank
        self._running = self._manager.generate_request(request, http)
        async for raw in self._running:
            # Of several choices none is a transcript's: those come without a session.
            self._ids.extend(raw["output_ids"] if isinstance(raw, dict) else ())
            yield raw

    def take(self) -> list[int]:
        """The tokens generated since the last call."""
        ids, self._ids = self._ids, []
        return ids

    async def aclose(self) -> None:
        """Abort what still runs."""
        if self._running is not None:
            await self._running.aclose()


NOT_FOR_CALLERS = (
    *("session_id", "session_params", "rid", "input_ids", "routed_dp_rank", "data_parallel_rank", "priority"),
    *("extra_key", "cache_salt", "bootstrap_host", "bootstrap_port", "bootstrap_room", "disagg_prefill_dp_rank"),
)
"""Fields of SGLang's request models that steer the engine: a caller could reach other callers' state with them."""


def read_request(kind: type[Any], call: OpenAICall) -> Any:
    """The body of ``call`` as SGLang's request model ``kind``.

    Raises:
        ServerError: ``invalid_request``, naming the field.
    """
    known = [name for name in kind.model_fields if name not in NOT_FOR_CALLERS]
    for name in call.body:
        if name not in known:
            raise invalid(f"'{name}' is not a known field here{nearest(name, known)}")
    if call.session_id is not None and call.body.get("n") not in (None, 1):
        raise invalid(f"'n' should be 1 in a session, got {shown(call.body['n'])}")
    try:
        return kind(**call.body)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(each) for each in first["loc"]) or "the body"
        raise invalid(f"'{place}': {first['msg']}, got {shown(first['input'])}") from None


async def events(serving: Any, request: Any, recorder: Recorder) -> AsyncGenerator[Event, None]:
    """What ``serving`` answers to ``request``; leaving early aborts it in the scheduler.

    Raises:
        ServerError: SGLang refuses the request, or cannot take it now.
    """
    try:
        response = await serving.handle_request(request, None)
        if isinstance(response, StreamingResponse):
            answer: dict[str, Any] = {"role": "assistant", "content": ""}
            async for line in response.body_iterator:
                data = str(line).removeprefix("data: ").strip()
                if data == SSE_DONE:
                    return
                body = orjson.loads(data)
                _refuse_failure(body)
                _add_delta(answer, body)
                if body.get("usage") is not None and not body["choices"]:
                    yield Event(body=body, token_ids=recorder.take(), answer=answer, usage=_usage(body["usage"]))
                else:
                    yield Event(body=body, token_ids=recorder.take())
        elif isinstance(response, BaseModel):
            body = response.model_dump()
            _refuse_failure(body)
            answer = body["choices"][0].get("message") or {"role": "assistant", "content": ""}
            yield Event(body=body, token_ids=recorder.take(), answer=answer, usage=_usage(body["usage"]))
        else:
            _refuse_failure({"error": {"code": response.status_code, **orjson.loads(bytes(response.body))}})
    finally:
        await recorder.aclose()


def _usage(usage: Mapping[str, Any]) -> Usage:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage.get("completion_tokens") or 0,
        cached_tokens=cached,
    )


def refused(status: int | None, message: str) -> ServerError:
    """What SGLang's refusal with an HTTP status is to a caller: their mistake, or an engine that cannot answer now."""
    if status == 500:
        return ServerError(ErrorCode.INTERNAL, "the request failed inside the engine")  # its message tells internals
    return ServerError(ErrorCode.INVALID_REQUEST if status == 400 else ErrorCode.ENGINE_UNAVAILABLE, message)


def _refuse_failure(body: Mapping[str, Any]) -> None:
    """Raise for an error in place of an answer, and for an answer that was given up."""
    error = body.get("error")
    if error is not None:
        raise refused(error.get("code"), str(error.get("message")))
    if any(choice.get("finish_reason") == "abort" for choice in body["choices"]):
        raise refused(None, "the engine gave the generation up")


def _add_delta(answer: dict[str, Any], body: Mapping[str, Any]) -> None:
    """Add what one chunk of a stream says to the message that the stream spells."""
    for choice in body["choices"][:1]:
        delta = choice.get("delta", {})
        for name in ("content", "reasoning_content"):
            if delta.get(name):
                answer[name] = (answer.get(name) or "") + delta[name]
        for part in delta.get("tool_calls") or ():
            calls = answer.setdefault("tool_calls", [])
            function = part["function"]
            if part["index"] >= len(calls):
                calls.append({"id": part["id"], "type": "function", "function": {"name": "", "arguments": ""}})
            call = calls[part["index"]]["function"]
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""
