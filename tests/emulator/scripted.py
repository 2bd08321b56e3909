"""A container whose answers a test writes byte for byte, on a real HTTP server."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from botocore.exceptions import ClientError

from emulator.router import Router
from emulator.server import HOST, bound_socket, listening

EXPIRES = "2030-01-01T00:00:00Z"
SESSION = "X-Amzn-SageMaker-Session-Id"
CLOSED = "X-Amzn-SageMaker-Closed-Session-Id"
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes


@dataclass
class ScriptedContainer:
    """`answer` gets each request; `seen` keeps them; `left` is set when the caller of a request went away."""

    name: str
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = lambda request: respond(b"{}")
    seen: list[Seen] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.path, headers, await request.read()))
        try:
            return await self.answer(request)
        finally:
            if request.transport is None:
                self.left.set()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self.serve)
        return app


@dataclass
class Endpoint:
    """An emulator app in front of scripted containers, and boto3 for it."""

    url: str
    router: Router
    containers: list[ScriptedContainer]
    urls: dict[str, str]
    client: Any
    now: list[float]
    """The router's clock, Unix seconds: the one item may be set."""

    @property
    def container(self) -> ScriptedContainer:
        (only,) = self.containers
        return only

    def answers(self, answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
        for each in self.containers:
            each.answer = answer

    def invoke(self, body: Any = b"{}", **arguments: Any) -> Any:
        """boto3's response, with the bytes of its body."""
        response = self.client.invoke_endpoint(EndpointName="sticky", Body=raw(body), **arguments)
        return response | {"Body": response["Body"].read()}

    def stream(self, body: Any = b"{}", **arguments: Any) -> Any:
        return self.client.invoke_endpoint_with_response_stream(EndpointName="sticky", Body=raw(body), **arguments)

    def open(self, session_id: str, expires: str = EXPIRES) -> Any:
        announce = {SESSION: f"{session_id}; Expires={expires}"}
        self.answers(lambda request: respond(b"{}", headers=announce))
        opened = self.invoke(SessionId="NEW_SESSION")
        self.answers(lambda request: respond(b"{}"))
        return opened

    def who_served(self) -> list[str]:
        return [each.name for each in self.containers if each.seen]


def raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


async def respond(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=status, headers=JSON | (headers or {}))


async def never(request: web.Request) -> web.StreamResponse:
    """No answer, ever."""
    await asyncio.Event().wait()
    raise AssertionError


async def broken(request: web.Request, *chunks: bytes) -> web.StreamResponse:
    """The connection is cut after `chunks`, without a proper end."""
    response = web.StreamResponse(headers=SSE)
    await response.prepare(request)
    for chunk in chunks:
        await response.write(chunk)
    assert request.transport is not None
    request.transport.close()
    return response


async def streamed(request: web.Request, *chunks: bytes, release: threading.Event | None = None) -> web.StreamResponse:
    """An SSE stream; the last chunk waits for `release`."""
    response = web.StreamResponse(headers=SSE)
    await response.prepare(request)
    for chunk in chunks:
        if release is not None and chunk is chunks[-1]:
            await asyncio.to_thread(release.wait, 20)
        await response.write(chunk)
    return response


@asynccontextmanager
async def serving_container(container: ScriptedContainer) -> AsyncIterator[str]:
    with bound_socket(0) as listener:
        async with listening(container.app(), listener):
            yield f"http://{HOST}:{listener.getsockname()[1]}"


def error_of(call: Callable[..., Any], *arguments: Any, **options: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        call(*arguments, **options)
    response: dict[str, Any] = caught.value.response
    return response


def summary(response: dict[str, Any]) -> tuple[int, str, str]:
    error = response["Error"]
    return response["ResponseMetadata"]["HTTPStatusCode"], error["Code"], error["Message"]


def parts(response: Any) -> list[bytes]:
    return [event["PayloadPart"]["Bytes"] for event in response["Body"]]


def post(endpoint: Endpoint, path: str, body: bytes = b"{}", headers: dict[str, str] | None = None) -> Any:
    connection = http.client.HTTPConnection(endpoint.url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
