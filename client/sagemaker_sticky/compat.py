"""The class of the 2025 AWS sticky-session sample, so that code written for it runs unchanged.

Names, arguments and what comes back are the sample's: boto3's own responses, and boto3's own errors. Two things differ:
a request is never repeated by itself, and :meth:`StatefulSMEDPBuilder.invoke_stream`, empty in the sample, works.
New code has more from :class:`sagemaker_sticky.StickyClient`.
"""

from __future__ import annotations

import json
from typing import Any

import boto3
from sagemaker_sticky_protocol import NEW_SESSION, RequestType

from ._core.answers import StreamAnswer
from ._core.calls import Call
from ._core.steps import once
from ._transport import runtime_config
from .stream import Stream

__all__ = ["DEFAULT_SAMPLING_PARAMS", "StatefulSMEDPBuilder"]

DEFAULT_SAMPLING_PARAMS = {"temperature": 0.9, "max_new_token": 128, "do_sample": True}
"""The sample's; the container takes ``max_new_token`` for ``max_new_tokens``."""


class StatefulSMEDPBuilder:
    """Calls one endpoint, in sessions whose ids the caller keeps.

    Attributes:
        endpoint_name: Name of the endpoint.
        sm_bt3_client: The boto3 client; may be replaced.
    """

    def __init__(self, endpoint_name: str) -> None:
        """Make the boto3 client, with boto3's default credentials and region."""
        self.endpoint_name = endpoint_name
        self.sm_bt3_client: Any = boto3.client("runtime.sagemaker", config=runtime_config())

    def start_session(self, extSessID: str) -> dict[str, Any]:
        """Open a session under this id; the response's ``NewSessionId`` is ``ID; Expires=...``."""
        return self._invoke({"extSessionID": extSessID, "requestType": RequestType.OPEN.value}, NEW_SESSION)

    def invoke(
        self, textPayload: str, sampling_params: dict[str, Any] | None = None, extSessID: str | None = None
    ) -> dict[str, Any]:
        """Send text and get boto3's response: ``json.loads(response["Body"].read())["generation"]["text"]``.

        Args:
            textPayload: What to say.
            sampling_params: The engine's; None takes DEFAULT_SAMPLING_PARAMS.
            extSessID: The session; None asks without one.
        """
        return self._invoke(_turn(textPayload, sampling_params, extSessID), extSessID)

    def invoke_stream(
        self, textPayload: str, sampling_params: dict[str, Any] | None = None, extSessID: str | None = None
    ) -> Stream:
        """Send text and iterate over the answer's text as it arrives; arguments are those of :meth:`invoke`.

        Raises:
            StreamInterrupted: while iterating; its ``text`` is what had arrived.
        """
        body = {**_turn(textPayload, sampling_params, extSessID), "stream": True}
        response = self.sm_bt3_client.invoke_endpoint_with_response_stream(**self._arguments(body, extSessID))
        answer = StreamAnswer(events=response["Body"], request_id=response["ResponseMetadata"].get("RequestId"))
        return Stream(lambda **_: once(Call(b"", stream=True)), perform=lambda _call: answer)

    def end_session(self, extSessID: str) -> dict[str, Any]:
        """Close the session; the response's ``ClosedSessionId`` is its id."""
        return self._invoke({"requestType": RequestType.CLOSE_SESSION.value}, extSessID)

    def _invoke(self, body: dict[str, Any], session_id: str | None) -> dict[str, Any]:
        response: dict[str, Any] = self.sm_bt3_client.invoke_endpoint(**self._arguments(body, session_id))
        return response

    def _arguments(self, body: dict[str, Any], session_id: str | None) -> dict[str, Any]:
        session = {} if session_id is None else {"SessionId": session_id}
        return {
            "EndpointName": self.endpoint_name,
            "ContentType": "application/json",
            "Body": json.dumps(body),
            **session,
        }


def _turn(text: str, sampling_params: dict[str, Any] | None, session_id: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "inputs": text,
        "sampling_params": DEFAULT_SAMPLING_PARAMS if sampling_params is None else sampling_params,
    }
    if session_id is not None:
        body |= {"extSessionID": session_id, "requestType": RequestType.TURN.value}
    return body
