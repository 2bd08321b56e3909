"""Settings of the emulator: one frozen value, made at the edge (command line, test, demo) and passed in."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args, get_type_hints

from sagemaker_sticky_protocol import MAX_BODY_BYTES

ENGINES = ("sglang", "echo")
ROUTING_STRATEGIES = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE")
ENDPOINT_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")
LIMITS: dict[str, tuple[float, float]] = {
    "instances": (1, 16),
    "port": (0, 65535),
    "prefix_length": (1024, 65536),
    "prefix_concurrency_threshold": (1, 1024),
    "answer_seconds": (0.01, 3600),
    "stream_seconds": (0.01, 3600),
    "max_body_bytes": (1, 64 * 1024 * 1024),
    "startup_seconds": (1, 3600),
    "grace_seconds": (0, 60),
}
"""Lowest and highest value allowed, by field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What AWS leaves undocumented: each field is one open question, each value one way to read it.

    A client is right when it works under every reading.
    """

    unknown_session: Literal["forward", "reject"] = "forward"
    """A turn in a session that the router does not know (any more): ``forward`` sends it to any instance, whose
    container then says session_not_found; ``reject`` answers a ValidationError. A close is always rejected."""
    lost_instance: Literal["forget", "keep"] = "forget"
    """Sessions of an instance that is gone: ``forget`` makes them unknown; ``keep`` goes on sending there, in vain."""
    later_expiry: Literal["ignored", "renews"] = "ignored"
    """A session header with a later ``Expires`` on the answer of a turn."""
    new_session: Literal["strategy", "random"] = "strategy"
    """Whether the variant's routing strategy places new sessions."""
    broken_stream: Literal["model_stream_error", "internal_stream_failure", "dropped"] = "model_stream_error"
    """What a caller sees when the container breaks off inside a stream: one of two events, or a lost connection."""

    @classmethod
    def choices(cls) -> dict[str, tuple[str, ...]]:
        """The readings that each question allows, the default first."""
        return {name: get_args(kind) for name, kind in get_type_hints(cls).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorConfig:
    """What one emulator needs to know.

    Raises:
        ValueError: every problem found, in one message.
    """

    instances: int = 2
    """Container processes behind the endpoint."""
    engine: str = "sglang"
    """``sglang`` (real, on the CPU) or ``echo`` (answers at once)."""
    model: str = ""
    """Model folder for ``sglang``; empty: the one that setup made."""
    ttl_minutes: float | None = None
    """Life of a session; None: the container's own default."""
    port: int = 0
    """TCP port on 127.0.0.1 of the runtime API; 0 picks a free one."""
    endpoint_name: str = "sticky"
    variant_name: str = "AllTraffic"
    region: str = "us-east-1"
    """Stands in error messages and in the variables to copy."""
    routing_strategy: str = "RANDOM"
    """How a request without a session finds its instance, in AWS's words."""
    prefix_length: int = 4096
    """With PREFIX_AWARE: bytes of the body, or characters of what OpenAI messages say, that decide."""
    prefix_concurrency_threshold: int = 16
    """With PREFIX_AWARE: requests in flight on one instance from which another one is taken."""
    readings: Readings = field(default_factory=Readings)
    answer_seconds: float = 60.0
    """A container that has not answered by then is a ModelError; of a stream: whose headers have not come."""
    stream_seconds: float = 480.0
    """Longest response stream; AWS's own figure is undocumented, about 8 minutes."""
    max_body_bytes: int = MAX_BODY_BYTES
    """Largest request body, and largest response body outside a stream."""
    part_bytes: tuple[int, ...] = ()
    """Sizes of the payload parts of a stream, taken in turn for ever: splits and merges what the container wrote, as
    AWS may. Empty: a part for each chunk, as they come."""
    startup_seconds: float = 600.0
    """How long a container may take until its /ping answers 200."""
    grace_seconds: float = 10.0
    """Time between SIGTERM and SIGKILL when a container is stopped."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables for the containers; they win over the emulator's own."""
    command: tuple[str, ...] = (sys.executable, "-m", "container", "run")
    """What a container process runs; it finds its port in ``SAGEMAKER_BIND_TO_PORT``."""

    def __post_init__(self) -> None:
        """Check every field."""
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems))


def _problems(config: EmulatorConfig) -> Iterable[str]:
    for name, allowed in (("engine", ENGINES), ("routing_strategy", ROUTING_STRATEGIES)):
        if getattr(config, name) not in allowed:
            yield f"'{name}' should be one of {', '.join(allowed)}, got {getattr(config, name)!r}"
    for name, (lowest, highest) in LIMITS.items():
        value = getattr(config, name)
        if not lowest <= value <= highest:
            yield f"'{name}' should be from {lowest:g} to {highest:g}, got {value:g}"
    if config.ttl_minutes is not None and config.ttl_minutes <= 0:
        yield f"'ttl_minutes' should be above 0, got {config.ttl_minutes:g}"
    if len(config.endpoint_name) > 63 or ENDPOINT_NAME.fullmatch(config.endpoint_name) is None:
        yield f"'endpoint_name' should be 1 to 63 letters, digits and inner hyphens, got {config.endpoint_name!r}"
    if any(size < 1 for size in config.part_bytes):
        yield f"'part_bytes' should be sizes of at least 1, got {config.part_bytes}"
    choices = Readings.choices()
    for each in fields(config.readings):
        reading = getattr(config.readings, each.name)
        if reading not in choices[each.name]:
            yield f"'{each.name}' should be one of {', '.join(choices[each.name])}, got {reading!r}"
