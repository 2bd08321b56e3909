"""What goes wrong on demand: faults that wait for a request to happen to, and sessions that are said to have expired.

A fault is data: :mod:`emulator.fault_api` takes it over HTTP, :mod:`emulator.app` asks for the one a request meets.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from typing import Any

import aiohttp
from sagemaker_sticky_protocol import ErrorCode, error_body

from emulator.errors import AwsError, ModelErrors, validation_error

OPERATIONS = ("invoke", "stream")
ANSWERS = (400, 424)


class Cut(ConnectionResetError):
    """The connection to the caller is cut here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request, or to several.

    Raises:
        ValueError: every problem found, in one message.
    """

    session: str | None = None
    """The session whose requests it meets; None: any request."""
    operation: str | None = None
    """``invoke`` or ``stream``; None: both."""
    times: int = 1
    """How many requests it meets."""
    answer: int | None = None
    """Answer this status without asking the container: 400 as the router, 424 as the model."""
    message: str = "The fault that was asked for."
    """Of that answer."""
    status: int = 500
    """Of a 424: the status that the container is said to have answered."""
    code: str | None = None
    """Of a 424: the ``error.code`` of the container's body; None makes a body that is none of the contract's."""
    delay_seconds: float = 0.0
    """Hold the container's answer back, after the container has begun it; SageMaker's own time limit goes on."""
    break_after_bytes: int | None = None
    """The container breaks off after so many bytes of its answer."""
    cut_after_bytes: int | None = None
    """The caller's connection is cut after so many bytes of the answer."""
    part_bytes: tuple[int, ...] = ()
    """Sizes of the payload parts of a stream, in turn, instead of the emulator's own."""

    def __post_init__(self) -> None:
        """Check every field."""
        if problems := list(_problems(self)):
            raise ValueError("; ".join(problems))

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Fault:
        """From JSON.

        Raises:
            ValueError: it is not right; names what is wrong.
        """
        known = {each.name for each in fields(cls)}
        if unknown := sorted(body.keys() - known):
            raise ValueError(f"{', '.join(map(repr, unknown))} is not known; known: {', '.join(sorted(known))}")
        values = dict(body)
        if isinstance(values.get("part_bytes"), list):
            values["part_bytes"] = tuple(values["part_bytes"])
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(f"a value has the wrong type: {error}") from None

    def meets(self, session: str | None, operation: str) -> bool:
        """Whether it happens to such a request."""
        return self.session in (None, session) and self.operation in (None, operation)

    def refusal(self, errors: ModelErrors) -> AwsError | None:
        """The answer instead of the container's, if the fault is one."""
        if self.answer is None:
            return None
        if self.answer == 400:
            return validation_error(self.message)
        body = json.dumps({"error": {"code": self.code, "message": self.message}}) if self.code else self.message
        return errors.from_container(self.status, body)

    async def spoil(self, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """The bytes of an answer, as far as this fault lets them through.

        Raises:
            aiohttp.ClientPayloadError: the container broke off.
            Cut: the connection to the caller is to be cut.
        """
        cuts = self.cut_after_bytes is not None
        left = self.cut_after_bytes if cuts else self.break_after_bytes
        async with aclosing(chunks):
            async for chunk in chunks:
                if left is None or len(chunk) < left:
                    yield chunk
                    left = None if left is None else left - len(chunk)
                    continue
                if left:
                    yield chunk[:left]
                raise Cut if cuts else aiohttp.ClientPayloadError("a fault that was asked for")


class Faults:
    """The faults that wait, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.waiting: list[Fault] = []
        self.expired: set[str] = set()
        """Sessions that a container is to say have expired."""

    def take(self, session: str | None, operation: str) -> Fault:
        """The fault that such a request meets, counted down; NO_FAULT for most."""
        for place, fault in enumerate(self.waiting):
            if fault.meets(session, operation):
                self.waiting[place : place + 1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                return fault
        return NO_FAULT

    def expiry(self, session: str | None, errors: ModelErrors) -> AwsError | None:
        """The container's answer in a session that is said to have expired."""
        if session not in self.expired:
            return None
        code = ErrorCode.SESSION_EXPIRED
        return errors.from_container(code.status, json.dumps(error_body(code, f"session {session!r} expired")))

    def clear(self) -> None:
        """Let nothing more go wrong."""
        self.waiting.clear()
        self.expired.clear()


def _problems(fault: Fault) -> Iterable[str]:
    if fault.operation is not None and fault.operation not in OPERATIONS:
        yield f"'operation' should be one of {', '.join(OPERATIONS)}, got {fault.operation!r}"
    if fault.answer is not None and fault.answer not in ANSWERS:
        yield f"'answer' should be one of {', '.join(map(str, ANSWERS))}, got {fault.answer!r}"
    if fault.times < 1:
        yield f"'times' should be at least 1, got {fault.times}"
    for name in ("delay_seconds", "break_after_bytes", "cut_after_bytes"):
        value = getattr(fault, name)
        if value is not None and value < 0:
            yield f"'{name}' should be at least 0, got {value}"
    if fault.cut_after_bytes is not None and fault.break_after_bytes is not None:
        yield "'cut_after_bytes' and 'break_after_bytes' exclude each other"
    if any(size < 1 for size in fault.part_bytes):
        yield f"'part_bytes' should be sizes of at least 1, got {fault.part_bytes}"


NO_FAULT = Fault()
"""What most requests meet."""
