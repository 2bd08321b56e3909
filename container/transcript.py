"""A session's conversation, kept as tokens.

A turn's prompt is the ids of everything before it plus the chat template's rendering of what is new, so that an engine
with a prefix cache has computed all but the new words, and the work of a turn does not grow with the history.

How a template renders "what is new" is found by rendering short probe conversations, once for each shape of
conversation. A template that rewrites the past (a reasoning model that drops earlier thinking, say) cannot be
continued like that: then the whole conversation is rendered anew, and :attr:`Prompt.rerendered` says so.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from container.engine import Message, Tokenizer, token_array

_USER, _ANSWER = "probe-question", "probe-answer"
_THOUGHT = f"<think>\nprobe-thought\n</think>\n\n{_ANSWER}"
_LONGEST_TAIL = 64  # tokens; what templates put after an answer is one to three
_KEPT_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content")


@dataclass(slots=True, kw_only=True)
class Prompt:
    """The prompt of one turn, not yet part of the transcript."""

    ids: array[int]
    messages: Sequence[Message]
    """What is new."""
    tools: Sequence[Any] | None
    rerendered: bool
    """Whether the history had to be rendered again."""
    kept_turns: int
    kept_messages: int
    """What of the transcript stands before this prompt; the rest goes when it is committed."""
    start: int
    """Ids up to here are the transcript's own."""


@dataclass(slots=True, kw_only=True)
class Committed:
    """What one turn changed in a transcript: enough to make the same change again."""

    kept_turns: int
    kept_messages: int
    start: int
    ids: array[int]
    """All that follows the first ``start`` ids."""
    messages: Sequence[bytes]
    tools: Sequence[Any] | None


@dataclass(slots=True)
class _Turn:
    end: int
    """Ids up to here belong to this turn and those before."""
    messages: int
    """Messages up to here, the answer included."""


@dataclass(frozen=True, slots=True)
class _Continuation:
    """How a template goes on after an answer, for one shape of conversation."""

    base: tuple[Message, ...]
    """A short conversation of that shape, which ends with an answer."""
    base_text: str
    tail: str
    """What the template puts after an answer's words."""
    tail_length: int
    """Its tokens."""


class ChatTemplate:
    """A tokenizer's chat template, with what probing it has found. One for all sessions of a model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._continuations: dict[tuple[bool, bytes], _Continuation | None] = {}

    def full(self, messages: Sequence[Message], tools: Sequence[Any] | None = None) -> array[int]:
        """Ids of a whole conversation, ready for the next answer.

        Raises:
            ValueError: the template refuses it.
        """
        return self._tokenizer.encode(self._tokenizer.render(messages, add_generation_prompt=True, tools=tools))

    def shared(self, context: Sequence[Message], tools: Sequence[Any] | None = None) -> array[int]:
        """Ids that a prompt starts with, whatever the user says after ``context``; empty where nothing is certain."""
        try:
            one, other = (self.full([*context, {"role": "user", "content": word}], tools) for word in ("A", "0"))
        except ValueError:
            return token_array()
        length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        return one[:length]

    def continued(
        self, answer_ids: array[int], new: Sequence[Message], *, system: bool, tools: Sequence[Any] | None
    ) -> array[int] | None:
        """Ids that follow an answer: the end of its turn as far as it lacks it, ``new``, and the generation prompt.

        None where the template rewrites the past, or renders ``new`` after a short conversation in another way.
        """
        how = self._continuation(system=system, tools=tools)
        if how is None:
            return None
        try:
            text = self._tokenizer.render([*how.base, *new], add_generation_prompt=True, tools=tools)
        except ValueError:
            return None
        if not text.startswith(how.base_text):
            return None
        ids = self._tokenizer.encode(how.tail + text[len(how.base_text) :])
        # The model ends its own turn: what it wrote of the tail is not written again.
        longest = min(len(answer_ids), how.tail_length)
        present = next((k for k in range(longest, 0, -1) if answer_ids[-k:] == ids[:k]), 0)
        return ids[present:]

    def _continuation(self, *, system: bool, tools: Sequence[Any] | None) -> _Continuation | None:
        key = (system, orjson.dumps(tools) if tools else b"")
        if key not in self._continuations:
            if len(self._continuations) > 1000:
                self._continuations.clear()  # each caller's tools are a key: bounded, and found again at once
            self._continuations[key] = self._probe(system=system, tools=tools)
        return self._continuations[key]

    def _probe(self, *, system: bool, tools: Sequence[Any] | None) -> _Continuation | None:
        head = ({"role": "system", "content": "probe-system"},) if system else ()
        question = {"role": "user", "content": _USER}
        found = None
        try:
            for answer in (_THOUGHT, _ANSWER):
                base = (*head, question, {"role": "assistant", "content": answer})
                asked = self._tokenizer.render([*head, question], add_generation_prompt=True, tools=tools)
                text = self._tokenizer.render(base, add_generation_prompt=False, tools=tools)
                later = self._tokenizer.render([*base, question], add_generation_prompt=True, tools=tools)
                # Some templates put a space before an answer, which the model writes itself when it answers.
                written = text.removeprefix(asked).lstrip()
                if not (text.startswith(asked) and written.startswith(answer) and later.startswith(text)):
                    return None
                tail = written.removeprefix(answer)
                found = _Continuation(base, text, tail, len(self._tokenizer.encode(tail)))
        except ValueError:
            return None
        return found


class Transcript:
    """One session's conversation. Preparing a prompt changes nothing; only :meth:`commit` does."""

    __slots__ = ("_context", "_has_system", "_ids", "_messages", "_template", "_tools", "_turns")

    def __init__(self, template: ChatTemplate, context: Sequence[Message] = ()) -> None:
        self._template = template
        self._messages: list[bytes] = [_pack(each) for each in context]
        self._context = len(self._messages)
        self._has_system = _is_system(self._messages)
        self._turns: list[_Turn] = []
        self._tools: Sequence[Any] | None = None
        self._ids = template.shared(context) if context else token_array()

    @property
    def ids(self) -> array[int]:
        """Every token that the session holds. Before the first turn: what its prompt will start with."""
        return self._ids

    @property
    def turns(self) -> int:
        """Turns answered."""
        return len(self._turns)

    @property
    def messages(self) -> list[Message]:
        """The whole conversation."""
        return [orjson.loads(each) for each in self._messages]

    def prepare(
        self, new: Sequence[Message], *, tools: Sequence[Any] | None = None, keep_turns: int | None = None
    ) -> Prompt:
        """The prompt that asks ``new`` after the first ``keep_turns`` turns (all of them by default).

        ``tools`` None means those of the turn before.

        Raises:
            ValueError: the template refuses the conversation.
        """
        turns = self.turns if keep_turns is None else keep_turns
        return self._prepare(new, tools=tools, turns=turns, messages=self._messages_after(turns))

    def replace(self, conversation: Sequence[Message], *, tools: Sequence[Any] | None = None) -> Prompt:
        """The prompt of a client that sends the whole conversation: the turns that both share are kept.

        Raises:
            ValueError: the template refuses the conversation.
        """
        pairs = zip(self._messages, map(_pack, conversation), strict=False)
        shorter = min(len(self._messages), len(conversation))
        same = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), shorter)
        turns = sum(each.messages <= same for each in self._turns)
        messages = self._messages_after(turns) if turns else 0
        return self._prepare(conversation[messages:], tools=tools, turns=turns, messages=messages)

    def commit(self, prompt: Prompt, output_ids: Sequence[int], answer: Message) -> Committed:
        """Make a prompt and its answer a turn of the conversation; gives what that changed."""
        ids = prompt.ids
        ids.extend(output_ids)
        change = Committed(
            kept_turns=prompt.kept_turns,
            kept_messages=prompt.kept_messages,
            start=prompt.start,
            ids=ids[prompt.start :],
            messages=[_pack(each) for each in (*prompt.messages, answer)],
            tools=prompt.tools,
        )
        self._apply(change, ids)
        return change

    def recommit(self, change: Committed) -> None:
        """Make a change again that :meth:`commit` gave, after those before it."""
        self._apply(change, self._ids[: change.start] + change.ids)

    def _apply(self, change: Committed, ids: array[int]) -> None:
        del self._messages[change.kept_messages :]
        del self._turns[change.kept_turns :]
        self._context = min(self._context, change.kept_messages)
        self._messages += change.messages
        if not change.kept_messages:
            self._has_system = _is_system(self._messages)
        self._ids = ids
        self._tools = change.tools
        self._turns.append(_Turn(len(ids), len(self._messages)))

    def _prepare(self, new: Sequence[Message], *, tools: Sequence[Any] | None, turns: int, messages: int) -> Prompt:
        tools = self._tools if tools is None else tools
        ids, start = None, 0
        if turns and tools == self._tools:
            start = self._turns[turns - 1].end
            past = self._ids if start == len(self._ids) else self._ids[:start]
            suffix = self._template.continued(past[-_LONGEST_TAIL:], new, system=self._has_system, tools=tools)
            ids = None if suffix is None else past + suffix
        rerendered = ids is None and turns > 0
        if ids is None:
            start = 0
            ids = self._template.full([*map(orjson.loads, self._messages[:messages]), *new], tools)
        return Prompt(
            ids=ids,
            messages=new,
            tools=tools,
            rerendered=rerendered,
            kept_turns=turns,
            kept_messages=messages,
            start=start,
        )

    def _messages_after(self, turns: int) -> int:
        return self._turns[turns - 1].messages if turns else self._context


def _is_system(messages: Sequence[bytes]) -> bool:
    return bool(messages) and bool(orjson.loads(messages[0])["role"] == "system")


def _pack(message: Message) -> bytes:
    """A message as compact JSON of the keys that templates read: half the memory of a dict, and comparable."""
    kept = {key: message[key] for key in _KEPT_KEYS if message.get(key) is not None}
    # orjson's result holds on to a buffer of several times its size: a copy does not.
    return memoryview(orjson.dumps(kept)).tobytes()
