"""The client: one endpoint, its sessions, and requests without a session."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._core.answers import Turn, read_turn
from ._core.calls import Content, Message, turn_call
from ._core.conversation import Conversation, new_conversation
from ._core.recovery import ROLL_OVER_SECONDS, Recovery
from ._core.steps import asking
from ._transport import make_transport
from .session import Session
from .stream import Stream

if TYPE_CHECKING:
    import boto3
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
        self.endpoint_name = endpoint_name
        self._transport = make_transport(
            endpoint_name,
            runtime=runtime,
            boto3_session=boto3_session,
            region_name=region_name,
            target={"TargetVariant": target_variant, "InferenceComponentName": inference_component_name},
        )

    def session(
        self,
        *,
        session_id: str | None = None,
        messages: Sequence[Message] | None = None,
        system: str | None = None,
        ttl: float | None = None,
        recover: bool = True,
        roll_over_seconds: float = ROLL_OVER_SECONDS,
    ) -> Session:
        """A session, opened when it is entered: ``with client.session() as session``.

        Args:
            session_id: Id to ask for; None, the better choice, lets the container choose: two instances do not know
                of each other's sessions, so that an id asked for twice may be given twice, and the later open wins.
                1 to 256 letters, digits and inner hyphens.
            messages: What the session holds from the start, as OpenAI messages; the endpoint reads it in now, so that
                the first turn is fast.
            system: Shorthand for a system message before them.
            ttl: Life of the session in seconds, from 1 to the container's own; None takes the container's.
            recover: Whether a session that is lost, or stands at another turn than is counted here, is opened again
                with the transcript and its turn said there, once. False: SessionLost, Draining and SessionConflict are
                raised.
            roll_over_seconds: A session that expires within so many seconds, or within a quarter of its life, goes on
                in a new one before its next turn.
        """
        return Session(
            self._transport,
            new_conversation(session_id=session_id, messages=messages, system=system, ttl=ttl),
            Recovery(enabled=recover, roll_over_seconds=roll_over_seconds),
        )

    def attach(self, session_id: str, *, messages: Sequence[Message] | None = None) -> Session:
        """A session that is open already, perhaps opened by another process. Nothing is sent.

        It is used at once, with or without ``with``, and stays open after it: :meth:`Session.close` closes it.

        Args:
            session_id: Its id, from :attr:`Session.id`.
            messages: Its transcript, from :attr:`Session.messages`, so that a loss can be recovered from; its id is
                another one afterwards. None: SessionLost is raised, and SessionConflict where others go on with the
                session: attach it again then.

        Raises:
            InvalidRequest: SageMaker takes no such id.
        """
        return Session(self._transport, Conversation.attached(session_id, messages), Recovery(), owned=False)

    def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Ask once, without a session, and wait for the whole answer.

        Args:
            content: Text is a raw prompt, as it goes to the model; OpenAI messages go through its chat template.
            **parameters: For text the engine's sampling parameters; for messages OpenAI's fields.

        Raises:
            StickyError: every failure; see the tree in this package's errors.
        """
        return read_turn(self._transport.send(turn_call(content, parameters)).json())

    def stream(self, content: Content, /, *, resume: bool = False, **parameters: Any) -> Stream:
        """Ask once, without a session, and read the answer while it is written.

        As :meth:`invoke` otherwise; ``resume`` is that of :meth:`Session.stream`.
        """
        return Stream(partial(asking, content, parameters), perform=self._transport.perform, resume=resume)

    def close(self) -> None:
        """Close the connections. A ``runtime`` that was given stays open."""
        self._transport.close()

    def __enter__(self) -> StickyClient:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
