"""The two calls of boto3's ``sagemaker-runtime`` client that everything goes through, and how that client is set up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from ._core.answers import Answer, StreamAnswer
from ._core.calls import Call
from ._core.error_mapping import mapped

if TYPE_CHECKING:
    from botocore.client import BaseClient

READ_TIMEOUT_SECONDS = 70
"""A container has 60 s to answer; AWS's InvokeEndpoint reference asks for a socket timeout of 70 s then."""
CONNECT_TIMEOUT_SECONDS = 10
MAX_CONNECTIONS = 50
"""Sessions that may talk at once over kept connections; botocore's 10 makes an eleventh connect anew each turn."""


def runtime_config(*, max_connections: int = MAX_CONNECTIONS) -> Config:
    """Settings of botocore for talking to a model.

    One attempt, whatever the environment says: botocore repeats a call after a read timeout or a 5xx, when the first
    generation may still be running or done, so that the GPU works twice and a session hears the same turn twice.
    botocore cannot be told to retry failed connections alone. Whoever wants other rules passes a client of their own.
    """
    return Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        max_pool_connections=max_connections,
        retries={"total_max_attempts": 1},
    )


def make_runtime(*, boto3_session: boto3.session.Session | None, region_name: str | None, config: Config) -> BaseClient:
    """A ``sagemaker-runtime`` client.

    Raises:
        StickyError: NotConfigured (no region, unknown profile) or AccessDenied.
    """
    with mapped():
        session = boto3_session or boto3.session.Session()
        return session.client("sagemaker-runtime", region_name=region_name, config=config)


def make_transport(
    endpoint_name: str,
    *,
    runtime: BaseClient | None,
    boto3_session: boto3.session.Session | None,
    region_name: str | None,
    target: Mapping[str, str | None],
    max_connections: int = MAX_CONNECTIONS,
) -> Transport:
    """The transport of a client; the arguments are those of :class:`StickyClient`.

    Raises:
        ValueError: ``runtime`` was given together with what only serves to make one.
        NotConfigured: boto3 found no region or profile.
    """
    if runtime is not None and (boto3_session is not None or region_name is not None):
        raise ValueError("'runtime' is used as it is: give either it, or 'boto3_session' and 'region_name'")
    owned = runtime is None
    if runtime is None:
        config = runtime_config(max_connections=max_connections)
        runtime = make_runtime(boto3_session=boto3_session, region_name=region_name, config=config)
    given = {name: value for name, value in target.items() if value is not None}
    return Transport(runtime, endpoint_name, given, owned=owned)


class Transport:
    """Sends calls to one endpoint. Safe to share between threads, as boto3's clients are."""

    def __init__(self, runtime: BaseClient, endpoint_name: str, target: dict[str, str], *, owned: bool) -> None:
        """``target`` holds further arguments of the call: TargetVariant, InferenceComponentName.

        ``owned`` is whether :meth:`close` closes ``runtime``.
        """
        self._owned = owned
        self._runtime: Any = runtime
        self._endpoint_name = endpoint_name
        self._target = target

    def close(self) -> None:
        """Close the connections, unless they are the caller's."""
        if self._owned:
            self._runtime.close()

    def perform(self, call: Call) -> Answer | StreamAnswer:
        """:meth:`stream` or :meth:`send`, as the call says."""
        return self.stream(call) if call.stream else self.send(call)

    def send(self, call: Call) -> Answer:
        """Send a call and read its answer.

        Raises:
            StickyError: every failure.
        """
        with mapped(session_id=call.session_id, endpoint_name=self._endpoint_name):
            response = self._runtime.invoke_endpoint(Accept="application/json", **self._arguments(call))
            body = response["Body"].read()
        return Answer(body, new_session=response.get("NewSessionId"), closed_session=response.get("ClosedSessionId"))

    def stream(self, call: Call) -> StreamAnswer:
        """Send a call whose answer is a stream.

        Raises:
            StickyError: the stream did not begin.
        """
        with mapped(session_id=call.session_id, endpoint_name=self._endpoint_name):
            response = self._runtime.invoke_endpoint_with_response_stream(
                Accept="text/event-stream", **self._arguments(call)
            )
        return StreamAnswer(events=response["Body"], request_id=response.get("ResponseMetadata", {}).get("RequestId"))

    def _arguments(self, call: Call) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "EndpointName": self._endpoint_name,
            "ContentType": "application/json",
            "Body": call.body,
            **self._target,
        }
        if call.session_id is not None:
            arguments["SessionId"] = call.session_id
        return arguments
