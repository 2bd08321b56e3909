"""Sticky sessions on Amazon SageMaker that remember the conversation."""

from sagemaker_sticky_protocol import SessionInfo

from ._core.answers import Turn, Usage
from .client import StickyClient
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
from .session import Session
from .stream import Stream

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
