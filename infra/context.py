"""Reads CDK context: JSON values from cdk.json and stage files, strings from ``-c key=value``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from sagemaker_sticky_protocol import nearest

from container.config import ContainerConfig
from infra.config import CONTAINER_KEYS, OWN_KEYS, InfraConfig
from infra.secrets import hidden, shown

CDK_NAMESPACES = ("@aws-cdk/", "@aws-cdk-containers/", "aws:cdk:", "aws-cdk:")
"""Beginnings of the CDK's own keys: feature flags and switches. Those that a user may want to set are
``@aws-cdk/core:bootstrapQualifier`` and ``@aws-cdk/core:permissionsBoundary``; plain, the CDK reads neither."""
CDK_LOOKUP = re.compile(r"[a-z-]+:account=")
"""Beginning of the keys under which the CDK keeps what it looked up, in cdk.context.json."""
CHOICES = frozenset({"stage", "pipeline"})
"""Keys that are no setting and choose what is deployed."""
_HINTS = {"@aws-cdk/core:bootstrapQualifier", "@aws-cdk/core:permissionsBoundary"}

T = TypeVar("T")


class Invalid(ValueError):
    """What is wrong with the values of an object; that it is none, is a plain ValueError."""


def without_cdk_keys(context: Mapping[str, Any]) -> dict[str, Any]:
    """What of ``context`` is for this app to read."""
    return {
        key: value for key, value in context.items() if not key.startswith(CDK_NAMESPACES) and not CDK_LOOKUP.match(key)
    }


def read_config(settings: Mapping[str, Any]) -> InfraConfig:
    """The deployment that ``settings`` describe.

    Raises:
        ValueError: every problem found, in one message.
    """
    known = OWN_KEYS | CONTAINER_KEYS
    hinted = known | CHOICES | _HINTS
    problems = [f"'{key}' is not a setting{nearest(key, hinted)}" for key in sorted(settings.keys() - known)]
    hints = get_type_hints(ContainerConfig) | get_type_hints(InfraConfig)
    values = _typed_values({key: settings[key] for key in sorted(settings.keys() & known)}, hints, problems)
    own = {key: value for key, value in values.items() if key in OWN_KEYS}
    container = _built(ContainerConfig, {key: values[key] for key in values.keys() - own.keys()}, problems)
    config = _built(InfraConfig, own | {"container": container or ContainerConfig()}, problems)
    if problems or config is None:
        raise ValueError(hidden("; ".join(problems)))
    return config


def read(kind: type[T], value: Any) -> T:
    """A dataclass of ours from an object of names and values, or its JSON.

    Raises:
        Invalid: every problem found, in one message.
        ValueError: it is no object.
    """
    try:
        items = _parsed(value) if isinstance(value, str) else value
    except ValueError:
        items = None
    if not isinstance(items, Mapping):
        raise ValueError(f"should be an object of names and values, got {shown(value)}")
    hints = get_type_hints(kind)
    problems = [f"'{key}' is not a setting{nearest(key, hints)}" for key in sorted(items.keys() - hints.keys())]
    values = _typed_values({key: items[key] for key in items.keys() & hints.keys()}, hints, problems)
    declared = fields(kind)  # type: ignore[arg-type]
    missing = [each.name for each in declared if each.name not in items and each.default is MISSING]
    try:
        built = kind(**values)
    except TypeError:
        problems.append(f"{', '.join(missing)} should be given")
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise Invalid(hidden("; ".join(problems)))
    return built


def _typed_values(given: Mapping[str, Any], hints: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The values as the types of their fields; a value that is none is noted as a problem."""
    values = {}
    for key, value in given.items():
        try:
            values[key] = _typed(value, hints[key])
        except Invalid as error:
            problems.append(f"'{key}': {error}")
        except (TypeError, ValueError, OverflowError):
            # Text that should be an object is not shown: nobody can say which of its words is a secret.
            unread = hints[key] == Mapping[str, str] and isinstance(value, str)
            got = "other text" if unread else shown(value)
            problems.append(f"'{key}' should be {_described(hints[key])}, got {got}")
    return values


def _built(kind: type[T], values: Mapping[str, Any], problems: list[str]) -> T | None:
    """A ``kind`` of these values, or None and its problems noted."""
    try:
        return kind(**values)
    except ValueError as error:
        problems.append(str(error))
        return None


def _item(hint: Any) -> Any:
    """The type of a tuple's items, or of what may also be None, or the type itself."""
    arguments = get_args(hint)
    return arguments[0] if arguments and get_origin(hint) is not Mapping else hint


def _typed(value: Any, hint: Any) -> Any:
    """``value`` as the type of its field; raises TypeError or ValueError where it is none."""
    if type(None) in get_args(hint):
        return None if value is None or value == "" else _typed(value, _item(hint))
    if hint == Mapping[str, str]:
        items = _parsed(value) if isinstance(value, str) else value
        if not isinstance(items, Mapping):
            raise TypeError
        if unset := [name for name, item in items.items() if item is None]:
            raise Invalid(f"'{unset[0]}' should have a value, got null")
        # Environment variables are text: true and 4096 become what SGLang reads, an object becomes its JSON.
        return {str(name): item if isinstance(item, str) else json.dumps(item) for name, item in items.items()}
    if get_origin(hint) is tuple:
        return _listed(value, _item(hint))
    if is_dataclass(hint):
        return read(hint, value)  # type: ignore[arg-type]
    if hint is bool:
        return _switched(value)
    if isinstance(value, bool) or (hint is str and not isinstance(value, str)):
        raise TypeError
    if hint is str:
        return value
    number = float(value)
    if hint is int and not number.is_integer():
        raise ValueError
    return int(number) if hint is int else number


def _parsed(text: str) -> Any:
    """The JSON in ``text``; raises ValueError where it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None


def _switched(value: Any) -> bool:
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    if not isinstance(value, bool):
        raise TypeError
    return value


def _listed(value: Any, kind: Any) -> tuple[Any, ...]:
    """A JSON list, or text with commas between its items."""
    if isinstance(value, str):
        value = _parsed(value) if value.startswith("[") else [each.strip() for each in value.split(",") if each]
    if not isinstance(value, list):
        raise TypeError
    return tuple(_typed(each, kind) for each in value)


def _described(hint: Any) -> str:
    item = _item(hint)
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if get_origin(hint) is tuple:
        return "a list of objects" if is_dataclass(item) else "a list of texts"
    return names.get(item, "an object of names and values") + (" or null" if type(None) in get_args(hint) else "")
