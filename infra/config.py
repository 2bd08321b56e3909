"""What a deployment is: one frozen value, read once from CDK context by ``app.py`` and passed down.

A context key is a field of :class:`InfraConfig` or one of the container's own settings: so no second place has to know
what ``cdk deploy -c max_sessions=200`` means. Everything is checked here, before anything is built or sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar, get_type_hints

from container.config import ContainerConfig

T = TypeVar("T")

MODEL_DIRECTORY = "/opt/ml/model"
"""Where SageMaker mounts model data in the container."""
CONTAINER_KEYS = frozenset(each.name for each in fields(ContainerConfig)) - {"host", "port", "instance"}
"""Settings of the container that are context keys. Address, port and instance name belong to SageMaker."""

BOUNDS: dict[str, tuple[float, float]] = {
    "min_instances": (1, 10_000),
    "max_instances": (1, 10_000),
    "target_concurrent_requests_per_instance": (1, 10_000),
    "scale_out_cooldown_seconds": (0, 3600),
    "scale_in_cooldown_seconds": (0, 3600),
    "container_startup_health_check_timeout_in_seconds": (60, 3600),
    "model_data_download_timeout_in_seconds": (60, 3600),
}
"""Lowest and highest value allowed, by field. Scaling to zero would need inference components: hence the 1."""
ALLOWED = {
    "routing_strategy": ("LEAST_OUTSTANDING_REQUESTS", "RANDOM"),
    "inference_ami_version": (
        "al2023-ami-sagemaker-inference-gpu-4-1",
        "al2-ami-sagemaker-inference-gpu-3-1",
        "al2-ami-sagemaker-inference-gpu-2-1",
        "al2-ami-sagemaker-inference-gpu-2",
        "al2-ami-sagemaker-inference-neuron-2",
        None,
    ),
}
"""Values allowed, by field, as in SageMaker's API model."""
PATTERNS = {
    "endpoint_name": (r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", "1 to 63 letters, digits and inner hyphens"),
    "instance_type": (r"ml\.[a-z0-9-]+\.[a-z0-9-]+", "a SageMaker instance type such as ml.g5.2xlarge"),
    "model": (
        r"[\w.-]+(/[\w.-]+)?|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([\w!.'()=+@/-]+/)?",
        "a model of the Hugging Face hub such as Qwen/Qwen2.5-7B-Instruct, or s3://bucket/prefix/ with a / at the end",
    ),
}
"""Regular expression and its meaning, by field."""
MAX_VARIABLE_BYTES = 1024
MAX_ENVIRONMENT_BYTES = 32 * 1024
"""Limits of SageMaker on one key or value, and on the container's environment as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraConfig:
    """One deployment, in SageMaker's words.

    Raises:
        ValueError: every problem found, in one message.
    """

    endpoint_name: str | None = None
    """Name of the endpoint. Default: CloudFormation makes one. Fixing it is safe, as an update does not replace an
    endpoint, and narrows the execution role to this endpoint's log group."""
    model: str = "Qwen/Qwen2.5-7B-Instruct"
    """What to serve: a hub name, which each instance downloads as it starts, or an uncompressed S3 prefix, which
    SageMaker mounts. Default: a model that fits the default instance type and needs no token."""
    base_image: str | None = None
    """SGLang image that the container is built on. Default: the one that ``container/Dockerfile`` names."""
    instance_type: str = "ml.g5.2xlarge"
    """Default: one A10G with 24 GB."""
    inference_ami_version: str | None = "al2023-ami-sagemaker-inference-gpu-4-1"
    """Host image, whose driver must fit the CUDA of ``base_image``: a mismatch hangs in Creating, with no log.
    Default: driver 580, for CUDA 13. None: SageMaker chooses, as an instance without a GPU needs."""
    min_instances: int = 1
    """Instances at first, and the fewest that autoscaling leaves."""
    max_instances: int = 4
    """Most instances that autoscaling starts. Equal to ``min_instances``: a fixed fleet, nothing scales."""
    target_concurrent_requests_per_instance: float = 8.0
    """Requests in one container that autoscaling aims at, streams counted until their last token. Default: a careful
    start for a 7B model on an A10G; set 70 to 80 % of what a load test of your own shows."""
    scale_out_cooldown_seconds: int = 60
    """Pause after an instance was added."""
    scale_in_cooldown_seconds: int = 300
    """Pause after an instance was taken. Default: long, because the sessions of an instance end with it."""
    routing_strategy: str = "LEAST_OUTSTANDING_REQUESTS"
    """Where a call without a session goes. Default: the least busy instance."""
    container_startup_health_check_timeout_in_seconds: int = 1800
    """From the start of the container to the first healthy ``/ping``. Default: time to download and load 15 GB."""
    model_data_download_timeout_in_seconds: int = 1800
    """To copy model data from S3 to the instance. Default: as above."""
    container: ContainerConfig = field(default_factory=ContainerConfig)
    """Settings of the container; in context its fields stand beside those above. Default: the container's own."""

    def __post_init__(self) -> None:
        """Check every field."""
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def autoscales(self) -> bool:
        """Whether the number of instances may change by itself."""
        return self.min_instances < self.max_instances

    @property
    def model_in_s3(self) -> bool:
        """Whether ``model`` is an S3 prefix."""
        return self.model.startswith("s3://")

    def environment(self) -> dict[str, str]:
        """The environment variables of the container."""
        model_path = MODEL_DIRECTORY if self.model_in_s3 else self.model
        arguments = {**self.container.engine_arguments, "model_path": model_path}
        return replace(self.container, engine_arguments=arguments).to_env()

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> InfraConfig:
        """Read CDK context: JSON values from cdk.json, strings from ``-c key=value``.

        Keys that are no Python name (``@aws-cdk/...``, ``aws:cdk:...``) are the CDK's own.

        Raises:
            ValueError: every problem found, in one message.
        """
        known = {each.name for each in fields(cls)} - {"container"} | CONTAINER_KEYS
        given = {key: value for key, value in context.items() if key.isidentifier()}
        problems = [f"'{key}' is not a setting{_nearest(key, known)}" for key in sorted(given.keys() - known)]
        hints = get_type_hints(ContainerConfig) | get_type_hints(cls)
        values: dict[str, Any] = {}
        for key in sorted(given.keys() & known):
            try:
                values[key] = _typed(given[key], hints[key])
            except (TypeError, ValueError):
                problems.append(f"'{key}' should be {_described(hints[key])}, got {given[key]!r}")
        own = {key: value for key, value in values.items() if key not in CONTAINER_KEYS}
        container = _built(ContainerConfig, {key: values[key] for key in values.keys() - own.keys()}, problems)
        config = _built(cls, own | {"container": container or ContainerConfig()}, problems)
        if problems or config is None:
            raise ValueError("; ".join(problems))
        return config


def _built(kind: type[T], values: Mapping[str, Any], problems: list[str]) -> T | None:
    """A ``kind`` of these values, or None and its problems noted."""
    try:
        return kind(**values)
    except ValueError as error:
        problems.append(str(error))
        return None


def _problems(config: InfraConfig) -> Iterable[str]:
    for name, (lowest, highest) in BOUNDS.items():
        value = getattr(config, name)
        if not lowest <= value <= highest:
            yield f"'{name}' should be from {lowest:g} to {highest:g}, got {value:g}"
    if config.max_instances < config.min_instances:
        yield f"'max_instances' should be at least 'min_instances' ({config.min_instances}), got {config.max_instances}"
    for name, allowed in ALLOWED.items():
        value = getattr(config, name)
        if value not in allowed:
            names = [each for each in allowed if each]
            yield f"'{name}' should be one of {', '.join(names)}, got {value!r}{_nearest(value, names)}"
    for name, (pattern, meaning) in PATTERNS.items():
        value = getattr(config, name)
        if value is not None and not re.fullmatch(pattern, value, re.ASCII):
            yield f"'{name}' should be {meaning}, got {value!r}"
    if "model_path" in config.container.engine_arguments:
        got = config.container.engine_arguments["model_path"]
        yield f"'engine_arguments' should not hold 'model_path', got {got!r}: set 'model'"
    yield from _environment_problems(config.environment())


def _environment_problems(environment: Mapping[str, str]) -> Iterable[str]:
    for name, value in environment.items():
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
            yield f"environment variable '{name}' should be letters, digits and underscores"
        size = max(len(name.encode()), len(value.encode()))
        if size > MAX_VARIABLE_BYTES:
            yield f"environment variable '{name}' should be at most {MAX_VARIABLE_BYTES} bytes, got {size}"
    total = sum(len(name.encode()) + len(value.encode()) for name, value in environment.items())
    if total > MAX_ENVIRONMENT_BYTES:
        yield f"the container's environment should be at most {MAX_ENVIRONMENT_BYTES} bytes in all, got {total}"


def _typed(value: Any, hint: Any) -> Any:
    """``value`` as the type of its field; raises TypeError or ValueError where it is none."""
    if hint == Mapping[str, str]:
        items = json.loads(value) if isinstance(value, str) else value
        if not isinstance(items, Mapping):
            raise TypeError
        # Environment variables are text: true and 4096 become what SGLang reads, an object becomes its JSON.
        return {str(name): item if isinstance(item, str) else json.dumps(item) for name, item in items.items()}
    if hint == str | None:
        return value if value is None else _typed(value, str) or None
    if isinstance(value, bool) or (hint is str and not isinstance(value, str)):
        raise TypeError
    if hint is str:
        return value
    number = float(value)
    if hint is int and not number.is_integer():
        raise ValueError
    return int(number) if hint is int else number


def _described(hint: Any) -> str:
    names = {str: "text", int: "a whole number", float: "a number", str | None: "text or null"}
    return names.get(hint, "an object of names and values")


def _nearest(name: str | None, known: Iterable[str]) -> str:
    close = get_close_matches(name or "", sorted(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
