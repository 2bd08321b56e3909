"""Sticky sessions on Amazon SageMaker that remember the conversation."""

from sagemaker_sticky_protocol import SessionInfo

from ._client import StickyClient
from ._core.answers import Turn, Usage
from ._session import Session
from ._stream import Stream
from .errors import (
    AccessDenied,
    ConnectionFailed,
    Draining,
    EndpointFailed,
    EngineUnavailable,
    InvalidRequest,
    InvalidResponse,
    NotConfigured,
    RequestTooLarge,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionError,
    SessionLost,
    StickyError,
    StreamInterrupted,
    TimedOut,
    TooManySessions,
    Unavailable,
)

__all__ = [
    "AccessDenied",
    "ConnectionFailed",
    "Draining",
    "EndpointFailed",
    "EngineUnavailable",
    "InvalidRequest",
    "InvalidResponse",
    "NotConfigured",
    "RequestTooLarge",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "SessionConflict",
    "SessionError",
    "SessionInfo",
    "SessionLost",
    "StickyClient",
    "StickyError",
    "Stream",
    "StreamInterrupted",
    "TimedOut",
    "TooManySessions",
    "Turn",
    "Unavailable",
    "Usage",
]
