"""OpenAI's objects out of an engine's plain chunks.

SGLang brings its own OpenAI side; this one is what the echo engine answers with.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from container.engine import Chunk, Event, OpenAICall, Usage
from container.errors import invalid, nearest, shown
from container.sampling import checked

SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "stop": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "sampling_seed",
}
"""OpenAI's fields that are sampling parameters, with SGLang's name for each."""
FIELDS = (*SAMPLING, "messages", "prompt", "model", "stream", "stream_options", "n", "tools", "tool_choice", "user")


def sampling_params(call: OpenAICall) -> dict[str, Any]:
    """The sampling parameters of an OpenAI request, by SGLang's names.

    Raises:
        ServerError: a field is unknown, or not one that an engine of plain chunks can honour.
    """
    for name in call.body:
        if name not in FIELDS:
            raise invalid(f"'{name}' is not a known field here{nearest(name, FIELDS)}")
    if call.body.get("n") not in (None, 1):
        raise invalid(f"'n' should be 1, got {shown(call.body['n'])}")
    given = {key: name for key, name in SAMPLING.items() if call.body.get(key) is not None}
    return {name: checked(key, name, call.body[key]) for key, name in given.items()}


async def events(call: OpenAICall, chunks: AsyncGenerator[Chunk, None], *, model: str) -> AsyncGenerator[Event, None]:
    """``chunks`` as the answer to ``call``: stream events, or one whole object."""
    kind = ("chat.completion" if call.chat else "text_completion") + (
        ".chunk" if call.chat and call.body.get("stream") else ""
    )
    name = f"{'chatcmpl' if call.chat else 'cmpl'}-{uuid.uuid4().hex}"
    head = {"id": name, "object": kind, "created": int(time.time()), "model": model}
    stream = bool(call.body.get("stream"))
    text: list[str] = []
    unsent: list[int] = []
    if stream and call.chat:
        yield Event(body=_event(head, {"delta": {"role": "assistant", "content": ""}}))
    async with aclosing(chunks):
        async for chunk in chunks:
            text.append(chunk.text)
            unsent.extend(chunk.token_ids)
            if stream and chunk.text:
                words = {"delta": {"content": chunk.text}} if call.chat else {"text": chunk.text}
                yield Event(body=_event(head, words), token_ids=tuple(unsent))
                unsent.clear()
            if chunk.finish_reason is not None:
                last = _last_events if stream else _whole
                for event in last(call, head, "".join(text), chunk):
                    yield replace(event, token_ids=tuple(unsent))
                    unsent.clear()


def _whole(call: OpenAICall, head: Mapping[str, Any], text: str, last: Chunk) -> Iterator[Event]:
    answer = {"role": "assistant", "content": text}
    words = {"message": answer} if call.chat else {"text": text}
    choice = {"index": 0, **words, "logprobs": None, "finish_reason": (last.finish_reason or {}).get("type")}
    yield Event(body={**head, "choices": [choice], "usage": openai_usage(last.usage)}, answer=answer, usage=last.usage)


def _last_events(call: OpenAICall, head: Mapping[str, Any], text: str, last: Chunk) -> Iterator[Event]:
    """The event with the finish reason, then the one with the usage where that is asked for."""
    answer = {"role": "assistant", "content": text}
    end: dict[str, Any] = {"delta": {}} if call.chat else {"text": ""}
    finish = _event(head, end, (last.finish_reason or {}).get("type"))
    if (call.body.get("stream_options") or {}).get("include_usage"):
        yield Event(body=finish)
        yield Event(body={**head, "choices": [], "usage": openai_usage(last.usage)}, answer=answer, usage=last.usage)
    else:
        yield Event(body=finish, answer=answer, usage=last.usage)


def openai_usage(usage: Usage | None) -> dict[str, Any] | None:
    """OpenAI's ``usage`` object."""
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _event(head: Mapping[str, Any], words: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {**head, "choices": [{"index": 0, **words, "finish_reason": finish_reason}]}
