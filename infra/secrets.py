"""Secrets in plain text: what is set in a deployment stands in its template, for all who may read that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

VALUE = re.compile(
    r"\b(hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[a-z]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{10,}|(AKIA|ASIA)[A-Z0-9]{16}|eyJ[\w-]{10,}\.eyJ[\w-]{10,})|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""Secrets by their look: of Hugging Face, OpenAI, GitHub, GitLab, Slack, AWS; JSON web tokens, private keys."""
NAME = re.compile(r"(^|_)(token|secret|password|passwd|passphrase|credentials?|(api|access|private|secret)_?key)$")
"""Names under which a secret is kept, in lower case with underscores."""

SHOWN_LENGTH = 120
"""Most letters of a value in a message."""


def in_texts(value: Any, name: str) -> Iterator[str]:
    """The names of those texts in ``value`` that hold a secret by their look, ``name`` for the value itself."""
    if isinstance(value, str) and VALUE.search(value):
        yield name
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from in_texts(item, hidden(str(key)))
            yield from in_texts(key, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from in_texts(item, name)


def in_arguments(arguments: Mapping[str, str]) -> Iterator[str]:
    """The names of those engine arguments that hold a secret by their name, or by a name in the JSON that they hold."""
    for name, value in arguments.items():
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if _is_secret(name) or any(map(_is_secret, _keys(found))):
            yield name


def hidden(message: str) -> str:
    """A message with what looks like a secret taken out."""
    return VALUE.sub("(a secret)", message)


def shown(value: Any) -> str:
    """A value for a message: on one line, of bounded length, and no secret."""
    text = hidden(repr(value))
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"


def problems(values: Mapping[str, Any], arguments: Mapping[str, str]) -> Iterator[str]:
    """A problem for each name that holds a secret; the message does not repeat it."""
    found = [*in_arguments(arguments), *in_texts(arguments, "engine_arguments"), *in_texts(values, "")]
    for name in dict.fromkeys(found):
        yield f"'{name}' should not hold a secret: what is set here stands in the template, for all to read"


def _is_secret(name: str) -> bool:
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return bool(NAME.search(re.sub(r"[^a-z0-9]+", "_", spelled.lower()).strip("_")))


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _keys(item)
