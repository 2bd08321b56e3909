"""The client: one endpoint, its sessions, and requests without a session; for an event loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._core.answers import Turn, read_turn
from .._core.calls import Content, Message, turn_call
from .._core.conversation import Conversation, new_conversation
from .._core.recovery import ROLL_OVER_SECONDS, Recovery
from .._core.steps import arun, asking, once
from .._transport import make_transport
from .session import AsyncSession
from .stream import AsyncStream
from .transport import MAX_CONCURRENCY, AsyncTransport

if TYPE_CHECKING:
    import boto3
    from botocore.client import BaseClient


class AsyncStickyClient:
    """As :class:`~sagemaker_sticky.StickyClient`, for one event loop."""

    def __init__(
        self,
        endpoint_name: str,
        *,
        runtime: BaseClient | None = None,
        boto3_session: boto3.session.Session | None = None,
        region_name: str | None = None,
        target_variant: str | None = None,
        inference_component_name: str | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
    ) -> None:
        """As StickyClient's; sends nothing.

        Args:
            endpoint_name: Name of the endpoint.
            runtime: A boto3 client, used as it is; its ``max_pool_connections`` should be ``max_concurrency``.
            boto3_session: Where to make that client.
            region_name: Region of that client.
            target_variant: Production variant to call.
            inference_component_name: Inference component to call.
            max_concurrency: Calls and streams that may be under way at once, a thread each; more wait.
        """
        self.endpoint_name = endpoint_name
        self._blocking = make_transport(
            endpoint_name,
            runtime=runtime,
            boto3_session=boto3_session,
            region_name=region_name,
            target={"TargetVariant": target_variant, "InferenceComponentName": inference_component_name},
            max_connections=max_concurrency,
        )
        self._transport = AsyncTransport(self._blocking, max_concurrency=max_concurrency)

    def session(
        self,
        *,
        session_id: str | None = None,
        messages: Sequence[Message] | None = None,
        system: str | None = None,
        ttl: float | None = None,
        recover: bool = True,
        roll_over_seconds: float = ROLL_OVER_SECONDS,
    ) -> AsyncSession:
        """A session, opened when it is entered: ``async with client.session() as session``. See StickyClient's."""
        conversation = new_conversation(session_id=session_id, messages=messages, system=system, ttl=ttl)
        recovery = Recovery(enabled=recover, roll_over_seconds=roll_over_seconds)
        return AsyncSession(self._transport, conversation, recovery)

    def attach(self, session_id: str, *, messages: Sequence[Message] | None = None) -> AsyncSession:
        """A session that is open already; it stays open after an ``async with``. See StickyClient's."""
        return AsyncSession(self._transport, Conversation.attached(session_id, messages), Recovery(), owned=False)

    async def invoke(self, content: Content, /, **parameters: Any) -> Turn:
        """Ask once, without a session, and wait for the whole answer. See StickyClient's."""
        answer = await arun(once(turn_call(content, parameters)), self._transport.perform)
        return read_turn(answer.json())

    def stream(self, content: Content, /, *, resume: bool = False, **parameters: Any) -> AsyncStream:
        """Ask once, without a session, and read the answer while it is written. See StickyClient's."""
        return AsyncStream(partial(asking, content, parameters), perform=self._transport.perform, resume=resume)

    async def close(self) -> None:
        """Give threads and connections back; what is under way still ends. A ``runtime`` given stays open."""
        self._transport.close()
        self._blocking.close()

    async def __aenter__(self) -> AsyncStickyClient:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()
