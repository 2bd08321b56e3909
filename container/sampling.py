"""Sampling parameters: which there are, under which names, and what they may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container.errors import invalid, nearest, shown

_NUMBER = (int, float)
_STRINGS = (str, list)
_SAMPLING: dict[str, tuple[tuple[type, ...], str]] = {
    "temperature": (_NUMBER, "a number from 0"),
    "top_p": (_NUMBER, "a number above 0, up to 1"),
    "top_k": ((int,), "-1 for all or a whole number from 1"),
    "min_p": (_NUMBER, "a number from 0 to 1"),
    "max_new_tokens": ((int,), "a whole number from 1"),
    "min_new_tokens": ((int,), "a whole number from 0"),
    "stop": (_STRINGS, "a string or a list of strings"),
    "stop_token_ids": ((list,), "a list of token ids"),
    "stop_regex": (_STRINGS, "a string or a list of strings"),
    "frequency_penalty": (_NUMBER, "a number from -2 to 2"),
    "presence_penalty": (_NUMBER, "a number from -2 to 2"),
    "repetition_penalty": (_NUMBER, "a number from 0 to 2"),
    "ignore_eos": ((bool,), "true or false"),
    "skip_special_tokens": ((bool,), "true or false"),
    "spaces_between_special_tokens": ((bool,), "true or false"),
    "no_stop_trim": ((bool,), "true or false"),
    "json_schema": ((str,), "a JSON schema, as a string"),
    "regex": ((str,), "a regular expression"),
    "ebnf": ((str,), "an EBNF grammar"),
    "structural_tag": ((str,), "a structural tag, as a string"),
    "logit_bias": ((dict,), "an object of token ids and numbers"),
    "sampling_seed": ((int,), "a whole number"),
}
"""SGLang's sampling parameters (``sglang/srt/sampling/sampling_params.py``): their JSON types and what is allowed."""

_RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 1e6),
    "top_p": (1e-9, 1),
    "min_p": (0, 1),
    "max_new_tokens": (1, 1e9),
    "min_new_tokens": (0, 1e9),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "repetition_penalty": (0, 2),
}

_ALIASES = {"max_new_token": "max_new_tokens"}  # the 2025 sample's spelling
_DO_SAMPLE = "do_sample"  # Hugging Face's and the sample's; false means greedy

DEFAULT_MAX_NEW_TOKENS = 128
"""SGLang's own."""
NAMES = (*_SAMPLING, *_ALIASES, _DO_SAMPLE)
"""Every name that is taken."""


def read_sampling(given: Mapping[str, Any], label: str) -> dict[str, Any]:
    """``given`` by SGLang's names, checked; ``label`` is the field that holds it.

    Raises:
        ServerError: a parameter is unknown, or its value is not allowed.
    """
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key == _DO_SAMPLE:
            if not isinstance(value, bool):
                raise invalid(f"'{label}.{key}' should be true or false, got {shown(value)}")
            continue
        known = _ALIASES.get(key, key)
        if known not in _SAMPLING:
            raise invalid(f"'{label}.{key}' is not a known parameter{nearest(key, NAMES)}")
        if value is not None:
            values[known] = checked(f"{label}.{key}", known, value)
    if given.get(_DO_SAMPLE) is False:
        values["temperature"] = 0.0
    return values


def checked(label: str, name: str, value: Any) -> Any:
    """``value`` if it may be SGLang's sampling parameter ``name``; ``label`` names it in the error."""
    kinds, allowed = _SAMPLING[name]
    low, high = _RANGES.get(name, (float("-inf"), float("inf")))
    wrong_kind = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
    if wrong_kind or (isinstance(value, (int, float)) and not low <= value <= high):
        raise invalid(f"'{label}' should be {allowed}, got {shown(value)}")
    return value
