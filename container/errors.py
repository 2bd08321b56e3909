"""Errors that reach a caller.

The data flow: the domain (config, sessions, transcript, engines) raises :class:`ServerError` with a code of the wire
contract; ``container.app`` is the only place that turns one into an answer, and anything else into ``internal``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from sagemaker_sticky_protocol import ErrorCode

MESSAGE_LIMIT = 1000
"""Characters: SageMaker cuts what it passes on of an error body at 2,048."""


class ServerError(Exception):
    """An answer other than success: ``code`` decides the HTTP status, ``message`` is for the caller to read."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return self.code.status


def invalid(message: str) -> ServerError:
    """An ``invalid_request``: the message names the field, the value got and what is allowed."""
    return ServerError(ErrorCode.INVALID_REQUEST, message)


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known name closest to ``name``, or nothing where none is close."""
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def shown(value: object, limit: int = 80) -> str:
    """``value`` for an error message: its repr, cut at ``limit`` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
