"""Where settings stand: a stage's in ``stages/NAME.json``, over them the command line's (``-c``), and none in cdk.json.

The CDK merges cdk.json and the command line before this app sees them. So that it is known which of the two wins over a
stage's file, cdk.json may say what is deployed (``stage`` or ``pipeline``) and what the CDK reads, but no setting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sagemaker_sticky_protocol import nearest

from infra.config import InfraConfig
from infra.context import CHOICES, read_config, without_cdk_keys
from infra.secrets import hidden, shown

REPOSITORY = Path(__file__).resolve().parents[1]
STAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,49}")
"""Of a stage, which begins the names of its stack and of its endpoint."""


def stage_config(name: object, commanded: Mapping[str, Any], *, directory: Path = REPOSITORY) -> InfraConfig:
    """The configuration of a stage: the defaults, over them its file, over that the command line.

    Args:
        name: Of the stage; its file is ``stages/NAME.json``.
        commanded: What ``-c`` says.
        directory: The root of the repository.

    Raises:
        ValueError: there is no such stage, or every problem of its configuration, with the file's name.
    """
    known = sorted(each.stem for each in (directory / "stages").glob("*.json"))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ValueError(f"'stage' should be a file of stages/ ({listed}), got {shown(name)}{nearest(name, known)}")
    if not STAGE_NAME.fullmatch(str(name)):
        raise ValueError(f"'stage' should be 1 to 50 letters, digits and hyphens, from a letter on, got {name!r}")
    file = f"stages/{name}.json"
    try:
        return read_config({**read_settings(directory / file), **commanded})
    except ValueError as problem:
        over = " with the command line over it" if commanded else ""
        raise ValueError(f"{file}{over}: {problem}") from None


def refuse_settings(file: Path) -> None:
    """Make sure that a file of the CDK, such as cdk.json, holds no setting in its context, if it is there.

    Raises:
        ValueError: it does, or it cannot be read.
    """
    if not file.exists():
        return
    try:
        found = read_settings(file)
        context = found if file.name == "cdk.context.json" else found.get("context", {})
        if not isinstance(context, dict):
            raise ValueError("'context' should be an object of names and values")
        if settings := sorted(without_cdk_keys(context).keys() - CHOICES):
            raise ValueError(f"'context' should hold no setting, got '{settings[0]}': it belongs into stages/NAME.json")
    except ValueError as problem:
        raise ValueError(hidden(f"{file.name}: {problem}")) from None


def read_settings(file: Path) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        ValueError: it holds none, or a name twice.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except json.JSONDecodeError as problem:
        raise ValueError(f"should be JSON: {problem}") from None
    except (OSError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"cannot be read: {problem}") from None
    if not isinstance(found, dict):
        raise ValueError(f"should be an object of names and values, got {json.dumps(found)[:40]}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; JSON itself would let the last of two with one name win."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"'{twice}' stands there twice")
    return found
