"""The client: one endpoint, its sessions, and requests without a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import boto3

from ._calls import Content, Message, turn_call
from ._conversation import Conversation
from ._session import Session
from ._stream import Stream
from ._transport import Transport, make_runtime
from ._turn import Turn, read_turn

if TYPE_CHECKING:
    from botocore.client import BaseClient


class StickyClient:
    """Talks to one SageMaker endpoint. Safe to share between threads; its sessions are not.

    Example::

        with StickyClient("my-endpoint").session(system="Answer in one sentence.") as session:
            print(session.invoke("My name is Ada. Who was Alan Turing?").text)
            for piece in session.stream("And what is my name?"):
                print(piece, end="", flush=True)
    """

    def __init__(
        self,
        endpoint_name: str,
        *,
        runtime: BaseClient | None = None,
        boto3_session: boto3.session.Session | None = None,
        region_name: str | None = None,
        target_variant: str | None = None,
        inference_component_name: str | None = None,
    ) -> None:
        """Sends nothing.

        Args:
            endpoint_name: Name of the endpoint.
            runtime: A boto3 ``sagemaker-runtime`` client, used as it is. None makes one that waits 70 s for an answer
                and never repeats a request, as a repeated one generates twice.
            boto3_session: Where to make that client; None uses boto3's default credentials and settings.
            region_name: Region of that client; None leaves it to boto3.
            target_variant: Production variant to call; None leaves it to the endpoint's weights.
            inference_component_name: Inference component to call; None for an endpoint without any.

        Raises:
            ValueError: ``runtime`` was given together with what only serves to make one.
            NotConfigured: boto3 found no region or profile.
        """
        if runtime is not None and (boto3_session is not None or region_name is not None):
            raise ValueError("'runtime' is used as it is: give either it, or 'boto3_session' and 'region_name'")
        if runtime is None:
            runtime = make_runtime(boto3_session=boto3_session, region_name=region_name)
        target = {"TargetVariant": target_variant, "InferenceComponentName": inference_component_name}
        self.endpoint_name = endpoint_name
        self._transport = Transport(
            runtime, endpoint_name, {name: value for name, value in target.items() if value is not None}
        )

    def session(
        self,
        *,
        session_id: str | None = None,
        messages: Sequence[Message] | None = None,
        system: str | None = None,
    ) -> Session:
        """A session, opened when it is entered: ``with client.session() as session``.

        Args:
            session_id: Id to ask for; None lets the container choose. 1 to 256 letters, digits and inner hyphens.
            messages: What the session holds from the start, as OpenAI messages; the endpoint reads it in now, so that
                the first turn is fast.
            system: Shorthand for a system message before them.
        """
        first = [] if system is None else [{"role": "system", "content": system}]
        return Session(self._transport, Conversation(proposed_id=session_id, messages=[*first, *(messages or ())]))

    def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Ask once, without a session, and wait for the whole answer.

        Args:
            content: Text is a raw prompt, as it goes to the model; OpenAI messages go through its chat template.
            **parameters: For text the engine's sampling parameters; for messages OpenAI's fields.

        Raises:
            StickyError: every failure; see the tree in this package's errors.
        """
        return read_turn(self._transport.send(turn_call(content, parameters)).json())

    def stream(self, content: Content, /, **parameters: Any) -> Stream:
        """Ask once, without a session, and read the answer while it is written; as :meth:`invoke` otherwise."""
        answer = self._transport.stream(turn_call(content, parameters, stream=True))
        return Stream(answer.events, request_id=answer.request_id)
