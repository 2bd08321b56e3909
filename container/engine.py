"""What the container asks of an inference engine: tokens in, tokens and text out.

Two engines stand behind this protocol: ``engine_sglang`` (the real one) and ``engine_echo`` (deterministic, at once).
The values that every token or turn makes anew are not frozen: that alone would be a tenth of the server's work.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Message = Mapping[str, Any]
"""An OpenAI chat message: ``role``, ``content`` and what else the role has."""


def token_array(ids: Sequence[int] = ()) -> array[int]:
    """Token ids, 4 bytes each: a transcript of 1,000 tokens takes 4 KB."""
    return array("I", ids)


@dataclass(slots=True, kw_only=True)
class Generation:
    """One prompt to complete."""

    input_ids: array[int]
    sampling_params: Mapping[str, Any] = field(default_factory=dict)
    """By SGLang's names."""
    session_id: str | None = None
    """Lets the engine keep what this prompt shares with the session's other prompts."""
    stream: bool = True
    """Whether the text is wanted as it comes; else one chunk will do, which is cheaper."""
    rank: int | None = None
    """Which data-parallel copy of the model; None leaves it to the engine."""
    begun: int = 0
    """How many of the last ids are not asked but answered: the caller has that beginning, and wants what follows."""


@dataclass(slots=True, kw_only=True)
class OpenAICall:
    """One request in OpenAI's words: a chat completion, or a completion of a raw prompt."""

    body: Mapping[str, Any]
    """As the caller sent it. Inside a session its ``messages`` are only what is new."""
    chat: bool
    input_ids: array[int] | None = None
    """The prompt that takes the place of what ``body`` would render to: a session's transcript."""
    session_id: str | None = None
    rank: int | None = None
    begun: int = 0
    """As of a :class:`Generation`: of the last of ``input_ids``."""


@dataclass(slots=True, kw_only=True)
class Usage:
    """Tokens of one generation."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """Prompt tokens whose KV was there already."""


@dataclass(slots=True, kw_only=True)
class Chunk:
    """What a generation has produced since the chunk before. The last one has ``finish_reason`` and ``usage``."""

    text: str
    token_ids: Sequence[int]
    finish_reason: Mapping[str, Any] | None = None
    """As SGLang says it: ``{"type": "stop" | "length" | "abort", ...}``."""
    usage: Usage | None = None


@dataclass(slots=True, kw_only=True)
class Event:
    """A piece of an answer, ready to be sent: an event of a stream, or the whole answer."""

    body: dict[str, Any]
    token_ids: Sequence[int] = ()
    """What was generated since the event before."""
    answer: Message | None = None
    """On the last event of a turn only: the message that the model gave."""
    usage: Usage | None = None
    """On the last event of a turn only."""


class Tokenizer(Protocol):
    """Text to tokens, and a conversation to text."""

    def encode(self, text: str) -> array[int]:
        """Token ids of ``text``, in which special tokens may be spelled out; none are added."""
        ...

    def render(
        self, messages: Sequence[Message], *, add_generation_prompt: bool, tools: Sequence[Any] | None = None
    ) -> str:
        """The model's chat template applied to ``messages``.

        Raises:
            ValueError: the template refuses them.
        """
        ...


class Engine(Protocol):
    """An inference engine in this process (its workers may be children of it)."""

    @property
    def name(self) -> str:
        """Name of the model, as ``/v1/models`` gives it."""
        ...

    @property
    def context_length(self) -> int:
        """Most tokens of prompt and completion together."""
        ...

    @property
    def kv_tokens(self) -> int:
        """Tokens whose KV fits the cache, over all ranks."""
        ...

    @property
    def ranks(self) -> int:
        """Data-parallel copies of the model, each with a cache of its own."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer and chat template."""
        ...

    async def start(self) -> None:
        """Load the model and answer one warm-up prompt. Called once, before anything else."""
        ...

    def generate(self, generation: Generation) -> AsyncGenerator[Chunk, None]:
        """Complete a prompt. Closing the generator early aborts the work.

        Raises:
            ServerError: ``invalid_request`` where the engine refuses the sampling parameters, ``engine_unavailable``
                where it cannot take the request now.
        """
        ...

    def openai(self, call: OpenAICall) -> AsyncGenerator[Event, None]:
        """Answer in OpenAI's objects: chunks where ``body`` asks for a stream, else one. Closing early aborts the work.

        Raises:
            ServerError: as :meth:`generate`.
        """
        ...

    async def release(self, session_id: str) -> None:
        """Let go of what is kept for a session."""
        ...

    def metrics(self) -> bytes:
        """The engine's own metrics, in Prometheus's text format."""
        ...

    def alive(self) -> bool:
        """Whether every process of the engine runs. Cheap: asked twice a second."""
        ...

    def stop(self) -> None:
        """End the engine's processes. Safe to call in any state."""
        ...
