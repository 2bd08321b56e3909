"""The asynchronous twin: the same sessions, recovery and errors, for an event loop.

Example::

    async with AsyncStickyClient("my-endpoint") as client, client.session() as session:
        print((await session.invoke("My name is Ada.")).text)
        async with session.stream("And what is my name?") as stream:
            async for piece in stream:
                print(piece, end="", flush=True)

boto3's calls run in threads; two cores hold two hundred streams at once. Cancelling a call does not take it back: its
thread waits for the answer, and a turn of that session waits for it. Leaving a stream that has begun ends it.
"""

from .client import AsyncStickyClient
from .session import AsyncSession
from .stream import AsyncStream

__all__ = ["AsyncSession", "AsyncStickyClient", "AsyncStream"]
