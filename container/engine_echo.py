"""An engine with no model: answers at once and always the same, streams, counts tokens, imitates a prefix cache.

It is what tests, benchmarks of everything but the model, and laptops without SGLang run on. Its answer quotes the last
user message and the first, so that an answer shows whether the conversation was remembered.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from array import array
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from container import openai_echo
from container.config import ContainerConfig
from container.engine import Chunk, Event, Generation, Message, OpenAICall, Usage, token_array
from container.sampling import DEFAULT_MAX_NEW_TOKENS

DEFAULT_CONTEXT_LENGTH = 8192
KV_TOKENS = 4 * 1024 * 1024
TOKENS_A_CHUNK = 4
"""Of a stream, where no time is spent on each token."""
CACHED_PROMPTS = 2048
"""Prompts that the imitated prefix cache remembers; the least recently used goes first."""

_TOKEN_BYTES = 4
_START, _END = "<|im_start|>", "<|im_end|>"
_MARKERS = re.compile(f"({re.escape(_START)}|{re.escape(_END)})")
_EOS = 0xFF000002
# The byte 0xFF never occurs in UTF-8: text never makes these two tokens, and a search for them ends where a token does.
_START_TOKEN, _END_TOKEN = (token_array([each]).tobytes() for each in (0xFF000001, _EOS))
_USER = _START_TOKEN + b"user\n"


class EchoTokenizer:
    """A token is 4 bytes of UTF-8, padded with NUL; ChatML is the template."""

    def encode(self, text: str) -> array[int]:
        """Token ids of ``text``; the two ChatML markers are one token each."""
        ids = token_array()
        ids.frombytes(b"".join(map(_tokens, _MARKERS.split(text))))
        return ids

    def render(
        self, messages: Sequence[Message], *, add_generation_prompt: bool, tools: Sequence[Any] | None = None
    ) -> str:
        """ChatML; ``tools`` are not rendered."""
        text = "".join(f"{_START}{each['role']}\n{_content(each)}{_END}\n" for each in messages)
        return text + f"{_START}assistant\n" if add_generation_prompt else text


class EchoEngine:
    """See the module's docstring."""

    def __init__(self, config: ContainerConfig) -> None:
        self.name = "echo"
        self.context_length = int(config.engine_arguments.get("context_length", DEFAULT_CONTEXT_LENGTH))
        self.kv_tokens = KV_TOKENS
        self.ranks = 1
        self.tokenizer = EchoTokenizer()
        self._cache = _PrefixCache()
        self._token_seconds = config.echo_token_seconds

    async def start(self) -> None:
        """Nothing to load."""

    async def generate(self, generation: Generation) -> AsyncGenerator[Chunk, None]:
        """Stream the answer token by token, cut at ``max_new_tokens``."""
        prompt = generation.input_ids.tobytes()
        cached = self._cache.shared(prompt, generation.session_id)
        limit = generation.sampling_params.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)
        asked = len(prompt) - generation.begun * _TOKEN_BYTES
        answer = self.tokenizer.encode(_answer(prompt[:asked]).removeprefix(_decode(prompt[asked:])))
        answer.append(_EOS)
        output = answer[:limit]
        finish = {"type": "stop", "matched": _EOS} if len(answer) <= limit else {"type": "length", "length": limit}
        usage = Usage(prompt_tokens=len(generation.input_ids), completion_tokens=len(output), cached_tokens=cached)
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        step = 1 if self._token_seconds else TOKENS_A_CHUNK if generation.stream else len(output) + 1
        last = max(0, len(output) - 1) // step * step
        for start in range(0, last, step):
            ids = output[start : start + step]
            yield Chunk(text=_text(decoder, ids), token_ids=ids)
            await asyncio.sleep(self._token_seconds)
        # The last token was never computed.
        self._cache.add(prompt, output[:-1].tobytes(), generation.session_id)
        ids = output[last:]
        yield Chunk(text=_text(decoder, ids), token_ids=ids, finish_reason=finish, usage=usage)

    def openai(self, call: OpenAICall) -> AsyncGenerator[Event, None]:
        """Answer in OpenAI's objects; tools and the like are taken and change nothing."""
        params = openai_echo.sampling_params(call)
        if call.input_ids is not None:
            ids = call.input_ids
        elif call.chat:
            ids = self.tokenizer.encode(self.tokenizer.render(call.body["messages"], add_generation_prompt=True))
        else:
            ids = self.tokenizer.encode(str(call.body["prompt"]))
        generation = Generation(
            input_ids=ids,
            sampling_params=params,
            session_id=call.session_id,
            stream=bool(call.body.get("stream")),
            begun=call.begun,
        )
        chunks = self.generate(generation)
        return openai_echo.events(call, chunks, model=self.name)

    async def release(self, session_id: str) -> None:
        """Forget what the session's prompts were."""
        self._cache.forget(session_id)

    def metrics(self) -> bytes:
        """None."""
        return b""

    def alive(self) -> bool:
        """Always: there is no other process."""
        return True

    def stop(self) -> None:
        """Nothing to end."""


def _tokens(piece: str) -> bytes:
    """The tokens of a marker, or of text without one."""
    if piece == _START:
        return _START_TOKEN
    if piece == _END:
        return _END_TOKEN
    data = piece.encode()
    return data + b"\0" * (-len(data) % _TOKEN_BYTES)


def _answer(prompt: bytes) -> str:
    """What the echo says to a rendered conversation, or to a raw prompt."""
    if _USER not in prompt:
        return f"You said: {_decode(prompt)}"
    first, last = _user_message(prompt, prompt.find(_USER)), _user_message(prompt, prompt.rfind(_USER))
    return f"You said: {last}" if first == last else f"You said: {last} | At first: {first}"


def _user_message(prompt: bytes, start: int) -> str:
    end = prompt.find(_END_TOKEN, start)
    return _decode(prompt[start + len(_USER) : end if end >= 0 else None])


def _decode(tokens: bytes) -> str:
    """Text of ``tokens``, markers left out."""
    for marker in (_START_TOKEN, _END_TOKEN):
        tokens = tokens.replace(marker, b"")
    return tokens.replace(b"\0", b"").decode(errors="replace")


def _text(decoder: codecs.IncrementalDecoder, ids: array[int]) -> str:
    if ids and ids[-1] == _EOS:
        ids = ids[:-1]
    return decoder.decode(ids.tobytes().replace(b"\0", b""))


def _content(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


class _PrefixCache:
    """How much of a prompt an engine with a prefix cache would already have computed. Prompts are bytes of tokens."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, tuple[bytes, bytes]] = OrderedDict()
        """A prompt and its completion, by key."""

    def shared(self, prompt: bytes, session_id: str | None) -> int:
        """Tokens at the start of ``prompt`` that some remembered prompt starts with; never the last one."""
        before, completion = self._known.get(_key(prompt, session_id), (b"", b""))
        common = _common(prompt, before)
        if common == len(before):
            common += _common(prompt[common : common + len(completion)], completion)
        return max(0, min(common, len(prompt) - 1) // _TOKEN_BYTES)

    def add(self, prompt: bytes, completion: bytes, session_id: str | None) -> None:
        """Remember a prompt and what of its completion was computed."""
        key = _key(prompt, session_id)
        self._known[key] = prompt, completion
        self._known.move_to_end(key)
        while len(self._known) > CACHED_PROMPTS:
            self._known.popitem(last=False)

    def forget(self, session_id: str) -> None:
        self._known.pop(session_id, None)


def _key(prompt: bytes, session_id: str | None) -> object:
    """Sessions are found by their id; what has none by its first tokens, as in a radix tree's first node."""
    return session_id if session_id is not None else prompt[: 8 * _TOKEN_BYTES]


def _common(one: bytes, other: bytes) -> int:
    """Length of the common prefix, by bisection over comparisons of slices."""
    if one.startswith(other):
        return len(other)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
