"""From what is asked to an answer: makes the prompt, runs the engine, and makes the turn part of the conversation.

A turn that fails, runs out of time or whose caller leaves changes nothing: its transcript is only written to once the
engine has finished.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from sagemaker_sticky_protocol import ErrorCode

from container.bodies import Ask, Open
from container.engine import Chunk, Engine, Event, Generation, OpenAICall, token_array
from container.errors import ServerError, invalid
from container.metrics import Metrics
from container.sampling import DEFAULT_MAX_NEW_TOKENS
from container.sessions import Session, SessionTable
from container.transcript import ChatTemplate, Prompt

Send = Callable[[Event], Awaitable[None]]


class Progress:
    """How far one answer is: its tokens so far, and when things happened."""

    __slots__ = ("_asked", "_begun", "_first", "token_ids")

    def __init__(self, begun: array[int]) -> None:
        """``begun``: tokens of the answer that the caller has already."""
        self._asked = self._begun = time.monotonic()
        self._first: float | None = None
        self.token_ids = begun

    def begin(self) -> None:
        """The turns before this one are done."""
        self._begun = time.monotonic()

    def add(self, token_ids: Sequence[int]) -> None:
        """More was generated."""
        if token_ids and self._first is None:
            self._first = time.monotonic()
        self.token_ids.extend(token_ids)

    @property
    def queue_seconds(self) -> float:
        """Wait for the session's earlier turns."""
        return self._begun - self._asked

    @property
    def first_token_seconds(self) -> float:
        """From the request to its first token."""
        return (self._first or time.monotonic()) - self._asked


class Turns:
    """Answers requests on one engine."""

    def __init__(self, engine: Engine, sessions: SessionTable, metrics: Metrics, *, timeout_seconds: float) -> None:
        self._engine = engine
        self._sessions = sessions
        self._metrics = metrics
        self._timeout_seconds = timeout_seconds

    async def open(self, asked: Open) -> Session:
        """Open a session, and compute the KV of its context now, so that the first turn is fast."""
        for over in self._sessions.reap(asked.proposed_id):
            await self._engine.release(over)
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
                    stream=False,
                )
                async with asyncio.timeout(self._timeout_seconds):
                    async for _ in self._engine.generate(prefill):
                        pass
            except BaseException as problem:
                await self.close(session.id)
                if isinstance(problem, TimeoutError):
                    raise ServerError(ErrorCode.ENGINE_UNAVAILABLE, "the context was not read in time") from None
                raise
        return session

    async def close(self, session_id: str) -> None:
        """End a session and release its KV."""
        await self._sessions.close(session_id)
        await self._engine.release(session_id)

    async def answer(self, ask: Ask, send: Send) -> tuple[Event | None, Session | None]:
        """Answer; a turn is part of its session when this returns.

        Args:
            ask: what is asked.
            send: takes the events of a stream as they come, all but the last.

        Returns:
            The last event, or the whole answer (None where a stream had no more to say), and the session.

        Raises:
            ServerError: the request is refused, or the answer was not complete in time. Where nothing was sent yet, it
                is an answer of its own.
        """
        progress = Progress(self._engine.tokenizer.encode(ask.answer_prefix) if ask.answer_prefix else token_array())
        if ask.session_id is None:
            return await self._run(ask, send, progress), None
        async with self._sessions.turn(ask.session_id) as session:
            progress.begin()
            prompt = _prompt(session, ask)
            last = await self._run(ask, send, progress, prompt, session)
            if last is None or last.answer is None or last.usage is None:
                raise ServerError(ErrorCode.ENGINE_UNAVAILABLE, "the engine ended without an answer")
            if ask.answer_prefix:
                last.answer = {**last.answer, "content": ask.answer_prefix + (last.answer.get("content") or "")}
            self._sessions.commit(session, prompt, progress.token_ids, last.answer)
        self._metrics.turn(
            last.usage,
            first_token_seconds=progress.first_token_seconds,
            queue_seconds=progress.queue_seconds,
            rerendered=prompt.rerendered,
        )
        return last, session

    async def _run(
        self,
        ask: Ask,
        send: Send,
        progress: Progress,
        prompt: Prompt | None = None,
        session: Session | None = None,
    ) -> Event | None:
        """Send what the engine says, all but the last; what it works on is aborted when this ends early."""
        answer, as_event = self._begin(ask, progress.token_ids[:], prompt, session)
        try:
            async with asyncio.timeout(self._timeout_seconds), aclosing(answer):
                async for piece in answer:
                    event = as_event(piece)
                    progress.add(event.token_ids)
                    if event.usage is not None:
                        return event
                    if ask.stream:
                        await send(event)
        except TimeoutError:
            raise ServerError(
                ErrorCode.ENGINE_UNAVAILABLE, f"the answer was not complete after {self._timeout_seconds:g} s"
            ) from None
        return None

    def _begin(
        self, ask: Ask, begun: array[int], prompt: Prompt | None, session: Session | None
    ) -> tuple[AsyncGenerator[Any, None], Callable[[Any], Event]]:
        """What the engine will say, and how a piece of that becomes an event."""
        if ask.openai is not None:
            return self._engine.openai(self._openai_call(ask, begun, prompt, session)), _as_it_is
        ids = prompt.ids if prompt is not None else self._engine.tokenizer.encode(ask.inputs or "")
        params = dict(ask.sampling_params)
        room = self._room(len(ids), params.get("max_new_tokens"), ask.said_in)
        params["max_new_tokens"] = max(1, room - len(begun))
        generation = Generation(
            input_ids=ids + begun if begun else ids,
            sampling_params=params,
            session_id=ask.session_id,
            rank=session.rank if session is not None else None,
            stream=ask.stream,
            begun=len(begun),
        )
        return self._engine.generate(generation), GenerationEvents(whole=not ask.stream)

    def _openai_call(self, ask: Ask, begun: array[int], prompt: Prompt | None, session: Session | None) -> OpenAICall:
        assert ask.openai is not None
        body = {"model": self._engine.name, **ask.openai}
        for name in ("max_tokens", "max_completion_tokens"):
            if begun and isinstance(body.get(name), int):
                body[name] = max(1, body[name] - len(begun))
        if prompt is None or session is None:
            ids = None
            if begun:
                try:
                    ids = ChatTemplate(self._engine.tokenizer).full(body["messages"], body.get("tools")) + begun
                except ValueError as problem:
                    raise invalid(f"'messages': {problem}") from None
            return OpenAICall(body=body, chat=ask.messages is not None, input_ids=ids, begun=len(begun))
        self._room(len(prompt.ids), None, ask.said_in)
        # What carries the session is the last event, the one with the usage.
        body["messages"] = list(prompt.messages)
        if ask.stream:
            body["stream_options"] = {"include_usage": True}
        if prompt.messages[0]["role"] == "tool":
            # Templates refuse a tool's answer without the call; the prompt is the transcript's either way.
            body["messages"] = [*session.transcript.messages, *prompt.messages]
        return OpenAICall(
            body=body,
            chat=True,
            input_ids=prompt.ids + begun if begun else prompt.ids,
            session_id=ask.session_id,
            rank=session.rank,
            begun=len(begun),
        )

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
    transcript, full = session.transcript, ask.history == "full"
    new, tools = ask.messages or (), (ask.openai or {}).get("tools")
    kept = transcript.turns if ask.rewind is None else ask.rewind
    if not full:
        _check_turn(session, ask, min(kept, transcript.turns) + 1)
    if kept > transcript.turns:
        raise invalid(f"'rewind' should be at most the {transcript.turns} turns of the session, got {kept}")
    try:
        prompt = (
            transcript.replace(new, tools=tools)
            if full
            else transcript.prepare(new, tools=tools, keep_turns=ask.rewind)
        )
    except ValueError as problem:
        raise invalid(f"'{ask.said_in}': {problem}") from None
    if full:
        _check_turn(session, ask, prompt.kept_turns + 1)
    return prompt


def _check_turn(session: Session, ask: Ask, following: int) -> None:
    """Refuse a turn whose caller takes the session to stand elsewhere than where turn ``following`` comes next."""
    if ask.turn not in (None, following):
        raise ServerError(
            ErrorCode.SESSION_CONFLICT,
            f"'turn' says that this is turn {ask.turn} of session {session.id!r}, where it would be turn {following}",
        )


def _as_it_is(event: Event) -> Event:
    return event


class GenerationEvents:
    """Turns chunks into ``{"generation": {"text", "meta_info"}}``: the 2025 sample's answer, SGLang's names inside."""

    __slots__ = ("_text", "_whole")

    def __init__(self, *, whole: bool) -> None:
        self._text = ""
        self._whole = whole
        """Whether the last event has the whole text, or what the events before it have not."""

    def __call__(self, chunk: Chunk) -> Event:
        """The event of one chunk."""
        self._text += chunk.text
        usage = chunk.usage
        if usage is None:
            return Event(body={"generation": {"text": chunk.text}}, token_ids=chunk.token_ids)
        meta_info = {
            "finish_reason": chunk.finish_reason,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
        }
        return Event(
            body={"generation": {"text": self._text if self._whole else chunk.text, "meta_info": meta_info}},
            token_ids=chunk.token_ids,
            answer={"role": "assistant", "content": self._text},
            usage=usage,
        )
