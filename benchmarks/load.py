"""What asks the servers: an HTTP client that costs less than they do, so that they are what limits a rate.

aiohttp's takes 150 us a request, as much as a server: two that differ twofold would seem equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import orjson
from sagemaker_sticky_protocol import NEW_SESSION, NEW_SESSION_ID_HEADER, SESSION_ID_HEADER, parse_new_session

JSON = {"Content-Type": "application/json"}


class Connection(asyncio.Protocol):
    """One connection of HTTP/1.1, kept alive; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._host = ""
        self._answered: asyncio.Future[None]

    @classmethod
    async def to(cls, url: str) -> Connection:
        """Connect to the server at ``url``."""
        parts = urlsplit(url)
        _, connection = await asyncio.get_running_loop().create_connection(cls, parts.hostname, parts.port)
        connection._host = parts.netloc
        return connection

    async def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON) -> bytes:
        """Send one request; gives the body of the answer, and leaves its headers in :attr:`headers`.

        Raises:
            RuntimeError: the status is not 200.
        """
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        self._answered = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self.headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._transport.write(head.encode() + body)
        await self._answered
        answer = b"".join(self._body)
        if self._parser.get_status_code() != 200:
            raise RuntimeError(f"{method} {path}: {answer.decode()}")
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """For asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, problem: Exception | None) -> None:
        """For asyncio: whoever waits is told."""
        if hasattr(self, "_answered") and not self._answered.done():
            self._answered.set_exception(ConnectionError(f"the server closed the connection: {problem}"))

    def data_received(self, data: bytes) -> None:
        """For asyncio."""
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """For httptools."""
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, data: bytes) -> None:
        """For httptools."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """For httptools."""
        self._answered.set_result(None)


async def open_session(connection: Connection) -> str:
    """Open a session; gives its id."""
    await _invoke(connection, NEW_SESSION, b'{"requestType": "NEW_SESSION"}')
    announced = connection.headers.get(SESSION_ID_HEADER.lower()) or connection.headers[NEW_SESSION_ID_HEADER.lower()]
    return parse_new_session(announced)[0]


async def turn(connection: Connection, session: str, text: str, **parameters: Any) -> dict[str, Any]:
    """Say ``text`` in a session; gives the body of the answer."""
    body = {"inputs": text, **({"parameters": parameters} if parameters else {})}
    answer: dict[str, Any] = orjson.loads(await _invoke(connection, session, orjson.dumps(body)))
    return answer


async def close_session(connection: Connection, session: str) -> None:
    """Close a session."""
    await _invoke(connection, session, b'{"requestType": "CLOSE"}')


async def at_once(url: str, work: Callable[[Connection], Awaitable[None]], callers: int) -> None:
    """Do ``work`` on so many connections of their own."""
    connections = [await Connection.to(url) for _ in range(callers)]
    await asyncio.gather(*map(work, connections))
    for connection in connections:
        connection.close()


async def _invoke(connection: Connection, session: str, body: bytes) -> bytes:
    return await connection.request("POST", "/invocations", body, {**JSON, SESSION_ID_HEADER: session})
