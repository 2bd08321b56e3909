"""What a caller writes; test_typing has mypy and pyright, both strict, read it. It is not run."""
# pyright: strict

from __future__ import annotations

from datetime import datetime

import sagemaker_sticky
from sagemaker_sticky import (
    Session,
    SessionInfo,
    SessionLost,
    StickyClient,
    StickyError,
    Stream,
    StreamInterrupted,
    Turn,
    Usage,
)
from sagemaker_sticky.aio import AsyncSession, AsyncStickyClient, AsyncStream
from sagemaker_sticky.compat import StatefulSMEDPBuilder


def blocking(client: StickyClient) -> list[str]:
    with client.session(system="Be brief.", ttl=600, recover=True) as session:
        turn: Turn = session.invoke("Hello", temperature=0)
        text: str = turn.text
        with session.stream([{"role": "user", "content": "Hi"}], resume=True, max_tokens=5) as stream:
            pieces: list[str] = list(stream)
        usage: Usage | None = stream.usage
        reason: str | None = stream.finish_reason
        session.rewind(1)
        told: tuple[str, int, int, datetime | None] = (session.id, session.turn, session.reopened, session.expires_at)
        cached: int = session.usage.cached_tokens
        role: object = session.messages[0]["role"]
    info: SessionInfo | None = turn.session
    attached: Session = client.attach(told[0], messages=session.messages)
    attached.close()
    whole: Stream = client.stream("Hello")
    return [text, *pieces, *whole, str((usage, reason, cached, role, info))]


async def asynchronous() -> str:
    async with AsyncStickyClient("name", max_concurrency=10) as client:
        session: AsyncSession = await client.session().open()
        turn: Turn = await session.invoke("Hello")
        stream: AsyncStream = session.stream("Hi")
        async with stream:
            pieces: list[str] = [piece async for piece in stream]
        await session.close()
    return turn.text + "".join(pieces)


def careful(client: StickyClient) -> str:
    try:
        return client.invoke("Hello").text
    except SessionLost as error:
        return error.code
    except StreamInterrupted as error:
        return error.text
    except StickyError as error:
        return str((error.status, error.request_id, error.cause))


def of_the_sample() -> str:
    builder = StatefulSMEDPBuilder("name")
    return "".join(builder.invoke_stream("Hello", {"temperature": 0}, "s-1"))


VERSION: list[str] = sagemaker_sticky.__all__
