"""The SageMaker runtime API over HTTP: what boto3 sees of an endpoint, in front of real containers.

Not checked, because no client's behaviour hangs on it: signatures and credentials, IAM, ``Content-Type``,
``TargetVariant`` and inference components. Bodies pass through and never reach a log.

``/openai/v1/chat/completions`` passes a request on as it is, and its answer too; it knows no sessions, and its errors
have AWS's shape (AWS documents neither).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

import aiohttp
from aiohttp import web
from sagemaker_sticky_protocol import (
    CLOSED_SESSION_ID_HEADER,
    NEW_SESSION,
    NEW_SESSION_ID_HEADER,
    SESSION_ID_HEADER,
    RequestType,
    format_new_session,
    format_time,
)

from emulator import headers as wire
from emulator.config import EmulatorConfig
from emulator.container_client import Call, ContainerClient
from emulator.errors import (
    AwsError,
    endpoint_not_found,
    internal_failure,
    oversize_body,
    service_unavailable,
    session_not_found,
    unknown_operation,
)
from emulator.eventstream import CONTENT_TYPE, frames, stream_exception
from emulator.faults import Fault, Faults
from emulator.router import NoInstance, Router, UnknownSession

DRAINED_BODY_BYTES = 64 * 1024 * 1024
"""How much of a body that is too large is read and thrown away, so that the caller reads the error and not a reset."""
CLOSES = (RequestType.CLOSE.value, RequestType.CLOSE_SESSION.value)
REQUEST_ID = web.RequestKey("request_id", str)

logger = logging.getLogger(__name__)


def build_app(
    config: EmulatorConfig, router: Router, urls: Mapping[str, str], faults: Faults | None = None
) -> web.Application:
    """The runtime API of one endpoint.

    Args:
        config: names, limits and readings.
        router: which instance takes a request.
        urls: the base URL of each instance's container; read at every request, so it may change.
        faults: what is to go wrong; None: nothing.
    """
    containers = ContainerClient(config, urls)
    endpoint = _Endpoint(config, router, containers, faults or Faults())
    app = web.Application(middlewares=[_answer_errors])
    app.cleanup_ctx.append(containers.connected)
    app.router.add_post("/endpoints/{name}/invocations", endpoint.invoke)
    app.router.add_post("/endpoints/{name}/invocations-response-stream", endpoint.stream)
    app.router.add_post("/endpoints/{name}/openai/v1/chat/completions", endpoint.openai)
    return app


class _Endpoint:
    def __init__(self, config: EmulatorConfig, router: Router, containers: ContainerClient, faults: Faults) -> None:
        self._faults = faults
        self._config = config
        self._router = router
        self._containers = containers

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """InvokeEndpoint."""
        wire.check(request.headers, may_open=True)
        call = await self._admit(request, request.headers.get(SESSION_ID_HEADER))
        fault = self._meet(call, "invoke")
        with self._router.outstanding(call.instance):
            async with self._containers.ask(call, "/invocations", wire.for_invoke(request.headers)) as answer:
                content = await self._containers.whole(answer, call.deadline, fault)
                session = self._remember(call, answer.headers)
                headers = self._passed_back(answer.headers) | session
                if fault.cut_after_bytes is None:
                    return web.Response(body=content, headers=headers)
                return await _relay(request, headers, fault.spoil(_in_one(content)))

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """InvokeEndpointWithResponseStream."""
        wire.check(request.headers, may_open=False)
        call = await self._admit(request, request.headers.get(SESSION_ID_HEADER))
        fault = self._meet(call, "stream")
        with self._router.outstanding(call.instance):
            async with self._containers.ask(call, "/invocations", wire.for_stream(request.headers)) as answer:
                self._remember(call, answer.headers)
                headers = self._passed_back(answer.headers)
                if wire.CONTENT_TYPE_HEADER in headers:
                    headers[wire.STREAM_CONTENT_TYPE_HEADER] = headers[wire.CONTENT_TYPE_HEADER]
                headers[wire.CONTENT_TYPE_HEADER] = CONTENT_TYPE
                await self._containers.hold(call, fault)
                return await _relay(request, headers, self._events(self._containers.chunks(answer), fault))

    async def openai(self, request: web.Request) -> web.StreamResponse:
        """The native OpenAI path: no session, no event stream."""
        call = await self._admit(request, None, _said)
        headers = wire.for_invoke(request.headers)
        headers.pop(SESSION_ID_HEADER, None)
        with self._router.outstanding(call.instance):
            async with self._containers.ask(call, "/v1/chat/completions", headers) as answer:
                return await _relay(request, self._passed_back(answer.headers), self._containers.chunks(answer))

    async def _admit(
        self, request: web.Request, session_id: str | None, said: Callable[[bytes], bytes | str] = bytes
    ) -> Call:
        """Read and check a request, and route it; ``said`` is what of a body decides under PREFIX_AWARE.

        The body is read whatever its size: a caller that is still sending does not read an error.
        """
        deadline = asyncio.get_running_loop().time() + self._config.answer_seconds
        body, size = bytearray(), 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
            if size <= self._config.max_body_bytes:
                body += chunk
            elif size > DRAINED_BODY_BYTES:
                break
        name = request.match_info["name"]
        if name != self._config.endpoint_name:
            raise endpoint_not_found(name)
        if size > self._config.max_body_bytes:
            raise oversize_body(request[REQUEST_ID])
        content = bytes(body)
        try:
            closes = session_id is not None and _closes(content)
            begins = said(content)[: self._config.prefix_length]
            prefix = (request.headers.get(wire.PREFIX_AWARE_ID_HEADER), begins)
            instance = self._router.route(session_id, closes=closes, prefix=prefix)
        except UnknownSession:
            raise session_not_found(str(session_id)) from None
        except NoInstance:
            raise service_unavailable() from None
        return Call(session_id, instance, content, deadline)

    def _meet(self, call: Call, operation: str) -> Fault:
        """The fault that a call meets, if it is not an answer of its own.

        Raises:
            AwsError: that answer.
        """
        fault = self._faults.take(call.session_id, operation)
        errors = self._containers.errors
        refusal = fault.refusal(errors) or self._faults.expiry(call.session_id, errors)
        if refusal is not None:
            raise refusal
        return fault

    async def _events(self, chunks: AsyncGenerator[bytes], fault: Fault) -> AsyncGenerator[bytes]:
        part_bytes = fault.part_bytes or self._config.part_bytes
        try:
            async with aclosing(frames(fault.spoil(chunks), part_bytes=part_bytes)) as parts:
                async for part in parts:
                    yield part
        except TimeoutError:
            message = "Your model primary did not complete sending the inference response in the allotted time."
            yield stream_exception("ModelStreamError", message, code="ModelInvocationTimeExceeded")
        except aiohttp.ClientError:
            message = "The connection to the model was reset or closed."
            match self._config.readings.broken_stream:
                case "model_stream_error":
                    yield stream_exception("ModelStreamError", message, code="StreamBroken")
                case "internal_stream_failure":
                    yield stream_exception("InternalStreamFailure", message)
                case "dropped":
                    raise

    def _passed_back(self, headers: Mapping[str, str]) -> dict[str, str]:
        return wire.passed_back(headers) | {wire.VARIANT_HEADER: self._config.variant_name}

    def _remember(self, call: Call, headers: Mapping[str, str]) -> dict[str, str]:
        """Keep what an answer says about sessions; the headers that tell the caller."""
        told = {}
        announced = wire.announced(headers)
        if announced is not None and call.session_id == NEW_SESSION:
            self._router.opened(announced.session_id, call.instance, announced.expires_at)
            expires = format_time(announced.expires_at)
            told[NEW_SESSION_ID_HEADER] = format_new_session(announced.session_id, expires)
        elif announced is not None and call.session_id == announced.session_id:
            self._router.announced_again(announced.session_id, announced.expires_at)
        if CLOSED_SESSION_ID_HEADER in headers:
            told[CLOSED_SESSION_ID_HEADER] = headers[CLOSED_SESSION_ID_HEADER]
            self._router.closed(headers[CLOSED_SESSION_ID_HEADER])
        return told


@web.middleware
async def _answer_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    request[REQUEST_ID] = str(uuid.uuid4())
    begun = time.monotonic()
    response: web.StreamResponse
    try:
        response = await handler(request)
    except AwsError as error:
        response = _error_response(error)
    except web.HTTPException:
        response = _error_response(unknown_operation())
    except Exception:
        logger.exception("the emulator failed")
        response = _error_response(internal_failure())
    if not response.prepared:
        response.headers[wire.REQUEST_ID_HEADER] = request[REQUEST_ID]
    session, seconds = request.headers.get(SESSION_ID_HEADER, "-"), time.monotonic() - begun
    logger.info("%s session=%s status=%d %.3f s", request.path, session, response.status, seconds)
    return response


def _error_response(error: AwsError) -> web.Response:
    return web.json_response(error.body(), status=error.status, headers={wire.ERROR_TYPE_HEADER: error.name})


async def _relay(request: web.Request, headers: dict[str, str], pieces: AsyncGenerator[bytes]) -> web.StreamResponse:
    """Send ``pieces`` on as they come. A source that breaks off, or a caller who is gone, ends the connection."""
    response = web.StreamResponse(headers=headers | {wire.REQUEST_ID_HEADER: request[REQUEST_ID]})
    await response.prepare(request)
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                await response.write(piece)
        await response.write_eof()
    except (aiohttp.ClientError, ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response


async def _in_one(content: bytes) -> AsyncGenerator[bytes]:
    yield content


def _closes(body: bytes) -> bool:
    """Whether a body asks to close its session: SageMaker's router tells a close of a session that it does not know."""
    if b"CLOSE" not in body:
        return False
    try:
        asked = json.loads(body)
    except ValueError:
        return False
    return isinstance(asked, dict) and asked.get("requestType") in CLOSES


def _said(body: bytes) -> str:
    """The text of a chat completion's messages; of what is none, the body itself."""
    try:
        contents = [each["content"] for each in json.loads(body)["messages"]]
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")
    return "".join(each if isinstance(each, str) else json.dumps(each) for each in contents)
