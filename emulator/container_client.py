"""HTTP towards the containers: one request, one connection, SageMaker's limits on time and size."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from emulator.config import EmulatorConfig
from emulator.errors import ModelErrors
from emulator.faults import NO_FAULT, Fault


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was read, checked and routed."""

    session_id: str | None
    instance: str
    body: bytes
    deadline: float
    """By when the container must have answered, on the loop's clock."""


class ContainerClient:
    """The containers behind the endpoint, by the name of their instance.

    What goes wrong is raised as AWS's error; only :meth:`chunks` raises what happened, because a stream has begun.
    """

    def __init__(self, config: EmulatorConfig, urls: Mapping[str, str]) -> None:
        self._config = config
        self._urls = urls
        self.errors = ModelErrors(endpoint=config.endpoint_name, region=config.region)
        self._client: aiohttp.ClientSession

    async def connected(self, app: web.Application) -> AsyncIterator[None]:
        """Hold the HTTP client while ``app`` serves."""
        # A connection for each request: a kept one may be stale, and an inference must not be sent twice.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as self._client:
            yield

    @asynccontextmanager
    async def ask(self, call: Call, path: str, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The container's answer, which is a success and whose body is still to be read.

        Leaving the context closes the connection, so that a caller who is gone ends the work in the container.
        """
        if call.instance not in self._urls:
            raise self.errors.unreachable()
        try:
            async with asyncio.timeout_at(call.deadline):
                answer = await self._client.post(
                    self._urls[call.instance] + path,
                    data=io.BytesIO(call.body),
                    headers=headers,
                    skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                    allow_redirects=False,
                )
        except TimeoutError:
            raise self.errors.timed_out() from None
        except aiohttp.ClientError:
            raise self.errors.unreachable() from None
        try:
            if not 200 <= answer.status < 300:
                original = (await self.whole(answer, call.deadline)).decode(errors="replace")
                raise self.errors.from_container(answer.status, original)
            yield answer
        finally:
            answer.close()

    async def hold(self, call: Call, fault: Fault) -> None:
        """Wait as long as ``fault`` says, within the time that a container has."""
        try:
            async with asyncio.timeout_at(call.deadline):
                await asyncio.sleep(fault.delay_seconds)
        except TimeoutError:
            raise self.errors.timed_out() from None

    async def whole(self, answer: aiohttp.ClientResponse, deadline: float, fault: Fault = NO_FAULT) -> bytes:
        """The whole body of an answer, by ``deadline`` and within the API's size."""
        content = bytearray()
        try:
            async with asyncio.timeout_at(deadline):
                async for chunk in answer.content.iter_any():
                    content += chunk
                    if len(content) > self._config.max_body_bytes:
                        raise self.errors.incomplete(answer.status)
                await asyncio.sleep(fault.delay_seconds)
        except TimeoutError:
            raise self.errors.timed_out() from None
        except aiohttp.ClientError:
            raise self.errors.incomplete(answer.status) from None
        if fault.break_after_bytes is not None and fault.break_after_bytes <= len(content):
            raise self.errors.incomplete(answer.status)
        return bytes(content)

    async def chunks(self, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        """The body as it comes.

        Raises:
            TimeoutError: the stream took longer than a stream may.
            aiohttp.ClientError: the container broke off.
        """
        # The limit is on each read and not around the loop: a timeout must not fire while the consumer writes.
        deadline = asyncio.get_running_loop().time() + self._config.stream_seconds
        while True:
            async with asyncio.timeout_at(deadline):
                chunk = await answer.content.readany()
            if not chunk:
                return
            yield chunk
