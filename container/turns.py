"""From what is asked to an answer: makes the prompt, runs the engine, and makes the turn part of the conversation.

A turn that fails, runs out of time or whose caller leaves changes nothing: its transcript is only written to once the
engine has finished.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from sagemaker_sticky_protocol import ErrorCode

from container.bodies import Ask, Open
from container.engine import Chunk, Engine, Event, Generation, OpenAICall
from container.errors import ServerError, invalid
from container.metrics import Metrics
from container.sessions import Session, SessionTable
from container.transcript import Prompt

T = TypeVar("T")

DEFAULT_MAX_NEW_TOKENS = 128
"""SGLang's own; less where the context window has less room left."""


class Turns:
    """Answers requests on one engine."""

    def __init__(self, engine: Engine, sessions: SessionTable, metrics: Metrics, *, timeout_seconds: float) -> None:
        self._engine = engine
        self._sessions = sessions
        self._metrics = metrics
        self._timeout_seconds = timeout_seconds

    async def open(self, asked: Open) -> Session:
        """Open a session, and compute the KV of its context now, so that the first turn is fast."""
        session = self._sessions.open(asked.proposed_id, asked.messages, ttl_seconds=asked.ttl_seconds)
        ids = session.transcript.ids
        if len(ids):
            try:
                self._room(len(ids), None, "messages")
                prefill = Generation(
                    input_ids=ids,
                    sampling_params={"max_new_tokens": 1, "temperature": 0.0},
                    session_id=session.id,
                    rank=session.rank,
                )
                async for _ in self._limited(self._engine.generate(prefill)):
                    pass
            except BaseException:
                await self.close(session.id)
                raise
        return session

    async def close(self, session_id: str) -> None:
        """End a session and release its KV."""
        await self._sessions.close(session_id)
        await self._engine.release(session_id)

    async def answer(self, ask: Ask) -> AsyncGenerator[tuple[Event, Session | None], None]:
        """The answer's events as they come; the last comes with the session, when the turn is part of it."""
        if ask.session_id is None:
            async with aclosing(self._limited(self._events(ask))) as events:
                async for event in events:
                    yield event, None
            return
        asked = time.monotonic()
        async with self._sessions.turn(ask.session_id) as session:
            begun, first = time.monotonic(), None
            prompt = _prompt(session, ask)
            output: list[int] = []
            async with aclosing(self._limited(self._events(ask, prompt, session))) as events:
                async for event in events:
                    output.extend(event.token_ids)
                    if first is None and event.token_ids:
                        first = time.monotonic()
                    if event.answer is None or event.usage is None:
                        yield event, None
                        continue
                    self._sessions.commit(session, prompt, output, event.answer)
                    self._metrics.turn(
                        event.usage,
                        first_token_seconds=(first or time.monotonic()) - asked,
                        queue_seconds=begun - asked,
                        rerendered=prompt.rerendered,
                    )
                    yield event, session

    def _events(
        self, ask: Ask, prompt: Prompt | None = None, session: Session | None = None
    ) -> AsyncGenerator[Event, None]:
        if ask.openai is not None:
            return self._engine.openai(self._openai_call(ask, prompt, session))
        ids = prompt.ids if prompt is not None else self._engine.tokenizer.encode(ask.inputs or "")
        params = dict(ask.sampling_params)
        params["max_new_tokens"] = self._room(len(ids), params.get("max_new_tokens"), ask.said_in)
        chunks = self._engine.generate(
            Generation(
                input_ids=ids,
                sampling_params=params,
                session_id=ask.session_id,
                rank=session.rank if session is not None else None,
            )
        )
        return _generation(chunks, stream=ask.stream)

    def _openai_call(self, ask: Ask, prompt: Prompt | None, session: Session | None) -> OpenAICall:
        assert ask.openai is not None
        if prompt is None or session is None:
            return OpenAICall(body=ask.openai, chat=ask.messages is not None)
        self._room(len(prompt.ids), None, ask.said_in)
        # What carries the session is the last event, the one with the usage.
        body = {**ask.openai, "messages": list(prompt.messages)}
        if ask.stream:
            body["stream_options"] = {"include_usage": True}
        if prompt.messages[0]["role"] == "tool":
            # Templates refuse a tool's answer without the call; the prompt is the transcript's either way.
            body["messages"] = [*session.transcript.messages, *prompt.messages]
        return OpenAICall(body=body, chat=True, input_ids=prompt.ids, session_id=ask.session_id, rank=session.rank)

    async def _limited(self, events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """``events``, within the time limit; the work behind them is aborted when this ends early."""
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            async with aclosing(events):
                # Around each step, not around the loop: a timeout must not strike while the caller writes an event.
                while (event := await _next(events, deadline)) is not None:
                    yield event
        except TimeoutError:
            raise ServerError(
                ErrorCode.ENGINE_UNAVAILABLE, f"the answer was not complete after {self._timeout_seconds:g} s"
            ) from None

    def _room(self, prompt_tokens: int, max_new_tokens: int | None, field: str) -> int:
        """The tokens that may be generated; refuses what does not fit the context window."""
        window = self._engine.context_length
        room = window - prompt_tokens
        wanted = 1 if max_new_tokens is None else max_new_tokens
        if room < wanted:
            ask = "" if max_new_tokens is None else f" and 'max_new_tokens' {max_new_tokens}"
            raise invalid(
                f"'{field}' makes the prompt {prompt_tokens} tokens{ask}: {wanted - room} more than fit the context "
                f"window of {window}"
            )
        return min(DEFAULT_MAX_NEW_TOKENS, room) if max_new_tokens is None else max_new_tokens


def _prompt(session: Session, ask: Ask) -> Prompt:
    transcript = session.transcript
    new, tools = ask.messages or (), (ask.openai or {}).get("tools")
    if ask.rewind is not None and ask.rewind > transcript.turns:
        raise invalid(f"'rewind' should be at most the {transcript.turns} turns of the session, got {ask.rewind}")
    try:
        if ask.history == "full":
            return transcript.replace(new, tools=tools)
        return transcript.prepare(new, tools=tools, keep_turns=ask.rewind)
    except ValueError as problem:
        raise invalid(f"'{ask.said_in}': {problem}") from None


async def _next(events: AsyncGenerator[T, None], deadline: float) -> T | None:
    async with asyncio.timeout_at(deadline):
        return await anext(events, None)


async def _generation(chunks: AsyncGenerator[Chunk, None], *, stream: bool) -> AsyncGenerator[Event, None]:
    """``{"generation": {"text", "meta_info"}}``: the 2025 sample's answer, with SGLang's names inside."""
    text: list[str] = []
    ids: list[int] = []
    async with aclosing(chunks):
        async for chunk in chunks:
            text.append(chunk.text)
            if stream and chunk.finish_reason is None:
                yield Event(body={"generation": {"text": chunk.text}}, token_ids=chunk.token_ids)
                continue
            ids.extend(chunk.token_ids)
            if chunk.finish_reason is not None:
                whole = "".join(text)
                yield Event(
                    body={"generation": {"text": chunk.text if stream else whole, "meta_info": _meta_info(chunk)}},
                    token_ids=ids,
                    answer={"role": "assistant", "content": whole},
                    usage=chunk.usage,
                )


def _meta_info(last: Chunk) -> dict[str, Any]:
    usage = last.usage
    assert usage is not None
    return {
        "finish_reason": last.finish_reason,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
    }
