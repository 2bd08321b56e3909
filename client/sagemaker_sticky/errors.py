"""What can go wrong.

::

    StickyError                 root: code, status, request_id, cause
    ├── InvalidRequest          wrong as it stands: sent again, it fails again (also a ValueError)
    │   └── RequestTooLarge     body over 6 MiB
    ├── SessionError            one session is in the way, the endpoint is well
    │   ├── SessionLost         expired, closed, unknown, or gone with its instance: open a new one
    │   ├── SessionConflict     the id asked for is in use, or the session is at another turn than counted here
    │   ├── SessionBusy         turns before this one have not ended
    │   └── SessionClosed       used before it was opened or after it was closed; nothing was sent
    ├── Unavailable             not now: loading, throttled or out of capacity
    │   ├── TooManySessions     the instance holds as many sessions as it may
    │   ├── Draining            the instance is going away
    │   └── EngineUnavailable   the model is not up
    ├── TimedOut                no answer in time; what was asked for may have happened
    ├── ConnectionFailed        no connection, or it broke before an answer was complete
    ├── StreamInterrupted       a stream ended before its end: text has what arrived
    ├── EndpointFailed          the container or SageMaker failed
    ├── InvalidResponse         the answer is not of this contract: is it another container?
    ├── AccessDenied            no credentials, or they do not allow the call
    └── NotConfigured           boto3 could not make a client or a request: region, profile, settings

``_core.error_mapping`` decides which of them a lower error becomes.
"""

from __future__ import annotations


class StickyError(Exception):
    """Root of every error that this package raises.

    Attributes:
        code: What a program may rely on: the container's ``error.code`` (:class:`ErrorCode`), else AWS's error code,
            else the name of the lower error's class.
        status: HTTP status: the container's own where the container answered, else AWS's; None without an answer.
        request_id: AWS's id of the call, for a support case; None without an answer.
    """

    def __init__(
        self, message: str, *, code: str | None = None, status: int | None = None, request_id: str | None = None
    ) -> None:
        """Keep the message and the facts beside it."""
        super().__init__(message)
        self.code = code if code is not None else type(self).__name__
        self.status = status
        self.request_id = request_id

    @property
    def cause(self) -> BaseException | None:
        """The lower error (botocore's or urllib3's) behind this one, or None."""
        return self.__cause__


class InvalidRequest(StickyError, ValueError):
    """The request is wrong as it stands; sent again, it fails again."""


class RequestTooLarge(InvalidRequest):
    """The body is over the 6 MiB that SageMaker takes; the message says by how much."""


class SessionError(StickyError):
    """One session is in the way; the endpoint is well."""


class SessionLost(SessionError):
    """The session is expired, closed, unknown, or gone with its instance. What it remembered is gone too."""


class SessionConflict(SessionError):
    """The id that was asked for belongs to an open session, or a session stands at another turn than counted here.

    Nothing was answered, and nothing changed there.
    """


class SessionBusy(SessionError):
    """Turns of this session that came before have not ended."""


class SessionClosed(SessionError):
    """The Session object was used before it was opened or after it was closed; nothing was sent."""


class Unavailable(StickyError):
    """The endpoint cannot take the request now; it may later."""


class TooManySessions(Unavailable):
    """The instance holds as many sessions as it may."""


class Draining(Unavailable):
    """The instance is going away and takes nothing new."""


class EngineUnavailable(Unavailable):
    """The model is not up."""


class TimedOut(StickyError):
    """No answer in time. What was asked for may have happened all the same."""


class ConnectionFailed(StickyError):
    """No connection, or it broke before an answer was complete."""


class StreamInterrupted(StickyError):
    """A stream ended before its end. A session stands as before the turn, unless the endpoint had just completed it.

    Attributes:
        text: What had arrived until then.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        """As the root, with the text so far."""
        super().__init__(message, code=code, status=status, request_id=request_id)
        self.text = text


class EndpointFailed(StickyError):
    """The container or SageMaker failed."""


class InvalidResponse(StickyError):
    """The answer is not of this package's contract: is another container behind the endpoint?"""


class AccessDenied(StickyError):
    """No credentials, or they do not allow the call."""


class NotConfigured(StickyError):
    """boto3 could not make a client or a request: no region, an unknown profile, a wrong setting."""
