"""A Hugging Face tokenizer and its chat template, as the transcript uses them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from container.engine import Message, token_array


class HuggingFaceTokenizer:
    """Wraps a ``transformers`` tokenizer, which is passed in: nothing heavy is imported here."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> array[int]:
        """Token ids of ``text``; special tokens in it are recognised, none are added."""
        return token_array(self._tokenizer.encode(text, add_special_tokens=False))

    def render(
        self, messages: Sequence[Message], *, add_generation_prompt: bool, tools: Sequence[Any] | None = None
    ) -> str:
        """The chat template applied; what the template raises becomes a ValueError."""
        try:
            text: str = self._tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=add_generation_prompt, tools=tools
            )
        except Exception as problem:  # templates raise what they like
            raise ValueError(f"the model's chat template refuses these messages: {problem}") from problem
        return text
