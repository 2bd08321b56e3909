"""AWS's error answers, in the shapes of the SageMaker runtime API (botocore's ``sagemaker-runtime`` service model).

The data flow: ``emulator.app`` raises :class:`AwsError`; its middleware turns one into the answer. The texts are those
that users of SageMaker report in public issues, because programs match on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ACCOUNT = "123456789012"
MAX_MESSAGE_LENGTH = 2048
"""Longest ``Message`` and ``OriginalMessage`` in the service model."""


class AwsError(Exception):
    """An error answer: ``name`` is what botocore gives as ``Error.Code``, ``members`` stand beside the message."""

    def __init__(self, name: str, status: int, message: str, **members: Any) -> None:
        super().__init__(message)
        self.name = name
        self.status = status
        self.message = message[:MAX_MESSAGE_LENGTH]
        self.members = members

    def body(self) -> dict[str, Any]:
        """The JSON body."""
        return {"Message": self.message, **self.members}


def validation_error(message: str) -> AwsError:
    """The request itself is wrong; no container saw it."""
    return AwsError("ValidationError", 400, message)


def constraint_violated(member: str, value: str, rule: str) -> AwsError:
    """A ValidationError of one member of the request, in AWS's words."""
    return validation_error(
        f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must {rule}"
    )


def endpoint_not_found(name: str) -> AwsError:
    """The account has no such endpoint."""
    return validation_error(f"Endpoint {name} of account {ACCOUNT} not found.")


def oversize_body(request_id: str) -> AwsError:
    """The request's body is larger than the API allows."""
    return validation_error(f"Request {request_id} has oversize body.")


def session_not_found(session_id: str) -> AwsError:
    """The router does not know the session. AWS documents the status only; the text is the emulator's own."""
    return validation_error(f"Session {session_id} does not exist or has expired.")


def service_unavailable() -> AwsError:
    """No instance is in service."""
    return AwsError("ServiceUnavailable", 503, "The service is unavailable. Try your call again.")


def internal_failure() -> AwsError:
    """The emulator itself failed."""
    return AwsError("InternalFailure", 500, "An internal failure occurred.")


def unknown_operation() -> AwsError:
    """No such path in the API."""
    return AwsError("UnknownOperationException", 404, "The operation is not known.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelErrors:
    """The ModelErrors (424) of one endpoint: the container's fault, or its answer."""

    endpoint: str
    region: str

    def from_container(self, status: int, original: str) -> AwsError:
        """The container answered 4xx or 5xx; ``original`` is its body, as text."""
        kind = "client" if 400 <= status < 500 else "server"
        return self._error(
            status, original, f'Received {kind} error ({status}) from primary with message "{original}".'
        )

    def timed_out(self) -> AwsError:
        """The container did not answer in time."""
        return self.from_container(
            0,
            "Your invocation timed out while waiting for a response from container primary. Review the latency metrics "
            "for each container in Amazon CloudWatch, resolve the issue, and try again.",
        )

    def unreachable(self) -> AwsError:
        """The container took no connection, or dropped it before an answer."""
        return self.from_container(
            0,
            f"Amazon SageMaker could not get a response from the {self.endpoint} endpoint. This can occur when CPU or "
            "memory utilization is high. To check your utilization, see Amazon CloudWatch. To fix this problem, use an "
            "instance type with more CPU capacity or memory.",
        )

    def incomplete(self, status: int) -> AwsError:
        """The container's body broke off, or is larger than the API allows."""
        return self._error(
            status, "", f"Received server error ({status}) from primary and could not load the entire response body."
        )

    def _error(self, status: int, original: str, message: str) -> AwsError:
        group = f"/aws/sagemaker/Endpoints/{self.endpoint}"
        console = f"https://{self.region}.console.aws.amazon.com/cloudwatch/home?region={self.region}"
        return AwsError(
            "ModelError",
            424,
            f"{message} See {console}#logEventViewer:group={group} in account {ACCOUNT} for more information.",
            OriginalStatusCode=status,
            OriginalMessage=original[:MAX_MESSAGE_LENGTH],
            LogStreamArn=f"arn:aws:logs:{self.region}:{ACCOUNT}:log-group:{group}",
        )
