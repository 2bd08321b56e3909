"""The HTTP side: SageMaker's container contract and the wire contract on Sanic, in front of one engine.

Read top-down: :func:`serve` runs the process; :func:`add_routes` makes the application; the rest answers requests.
This is the only place that turns an error into an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST
from sagemaker_sticky_protocol import (
    CLOSED_SESSION_ID_HEADER,
    MAX_BODY_BYTES,
    SESSION_ID_HEADER,
    SSE_DONE,
    ErrorCode,
    error_body,
    format_new_session,
)
from sanic import HTTPResponse, Request, Sanic
from sanic.exceptions import PayloadTooLarge, SanicException

from container import logs
from container.bodies import Ask, Close, Open, read_invocation, read_json, read_openai
from container.config import ContainerConfig
from container.engine import Engine, Event
from container.errors import ServerError
from container.lifecycle import Server
from container.sessions import Session

logger = logging.getLogger(__name__)


def serve(config: ContainerConfig, make_engine: Callable[[], Engine]) -> int:
    """Run the server until it is stopped; gives the exit status."""
    app: Sanic[Any, Any] = Sanic("sticky", configure_logging=False)
    server = Server(config, make_engine, app.stop)
    add_routes(app, server)
    try:
        app.run(
            host=config.host,
            port=config.port,
            single_process=True,
            access_log=False,
            motd=False,
            register_sys_signals=False,
        )
    finally:
        server.stop_engine()
    return server.exit_status


def add_routes(app: Sanic[Any, Any], server: Server) -> None:
    """Give the application its routes and its life cycle."""
    # Sanic cuts the connection of what is larger; up to here a caller gets an answer that says why.
    app.config.REQUEST_MAX_SIZE = 4 * MAX_BODY_BYTES
    app.config.RESPONSE_TIMEOUT = app.config.REQUEST_TIMEOUT = 3600  # Turns has the limit that counts
    app.config.KEEP_ALIVE_TIMEOUT = 75
    app.config.GRACEFUL_SHUTDOWN_TIMEOUT = 1.0  # by then drain() has waited
    app.config.FALLBACK_ERROR_FORMAT = "json"

    @app.after_server_start
    async def _start(app: Sanic[Any, Any]) -> None:
        server.handle_signals()
        app.add_task(server.start())

    @app.before_server_stop
    async def _stop(_app: Sanic[Any, Any]) -> None:
        await server.stop()

    @app.get("/ping")
    async def _ping(_request: Request) -> HTTPResponse:
        return HTTPResponse(status=200 if server.ready and not server.draining else 503)

    @app.get("/metrics")
    async def _metrics(_request: Request) -> HTTPResponse:
        body = server.metrics.prometheus() + (server.engine.metrics() if server.ready else b"")
        return HTTPResponse(body, content_type=CONTENT_TYPE_LATEST)

    @app.post("/invocations")
    async def _invocations(request: Request) -> HTTPResponse | None:
        with server.request():
            return await _invoke(server, request)

    @app.post("/v1/chat/completions")
    async def _chat_completions(request: Request) -> HTTPResponse | None:
        with server.request():
            return await _answer(server, request, read_openai(_json_of(request), "messages"))

    @app.post("/v1/completions")
    async def _completions(request: Request) -> HTTPResponse | None:
        with server.request():
            return await _answer(server, request, read_openai(_json_of(request), "prompt"))

    @app.get("/v1/models")
    async def _models(_request: Request) -> HTTPResponse:
        with server.request():
            model = {"id": server.engine.name, "object": "model", "created": server.started, "owned_by": "sglang"}
            return _json({"object": "list", "data": [{**model, "max_model_len": server.engine.context_length}]})

    @app.exception(Exception)
    async def _failed(_request: Request, problem: Exception) -> HTTPResponse:
        error = _as_server_error(problem)
        server.metrics.error(error.code.value)
        logger.info("refused: %s", error.code.value)  # the message may quote what the caller sent
        return _error(error)


async def _invoke(server: Server, request: Request) -> HTTPResponse | None:
    asked = read_invocation(request.headers.get(SESSION_ID_HEADER), _json_of(request))
    match asked:
        case Open():
            return await _open(server, asked)
        case Close():
            logs.session_id.set(asked.session_id)
            await server.turns.close(asked.session_id)
            logger.debug("session closed")
            return _json({}, headers={CLOSED_SESSION_ID_HEADER: asked.session_id})
        case Ask():
            return await _answer(server, request, asked)


def _json_of(request: Request) -> dict[str, Any]:
    if len(request.body) > MAX_BODY_BYTES:
        raise _too_large(len(request.body))
    return read_json(request.body)


async def _open(server: Server, asked: Open) -> HTTPResponse:
    session = await server.turns.open(asked)
    info = server.sessions.info(session)
    logs.session_id.set(info.id)
    logger.debug("session opened, until %s", info.expires_at)
    return _json({"session": info.to_dict()}, headers={SESSION_ID_HEADER: format_new_session(info.id, info.expires_at)})


async def _answer(server: Server, request: Request, ask: Ask) -> HTTPResponse | None:
    logs.session_id.set(ask.session_id or "")
    if not ask.stream:
        last, session = await server.turns.answer(ask, _never)
        assert last is not None
        return _json(_body(server, last, session))
    stream = _Stream(request)
    try:
        last, session = await server.turns.answer(ask, stream.send)
        if last is not None:
            await stream.write(_sse(_body(server, last, session)))
        await stream.write(f"data: {SSE_DONE}\n\n")
    except Exception as problem:
        if not stream.begun:
            raise
        error = _as_server_error(problem)
        server.metrics.error(error.code.value)
        await stream.write(_sse(error_body(error.code, error.message)))
    await stream.end()
    return None


class _Stream:
    """A response of server-sent events. It begins with the first one: until then an error has a status of its own."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._response: Any = None

    @property
    def begun(self) -> bool:
        return self._response is not None

    async def send(self, event: Event) -> None:
        await self.write(_sse(event.body))

    async def write(self, data: bytes | str) -> None:
        if self._response is None:
            self._response = await self._request.respond(
                content_type="text/event-stream", headers={"Cache-Control": "no-cache"}
            )
        await self._response.send(data)

    async def end(self) -> None:
        await self._response.eof()


async def _never(_event: Event) -> None:
    raise AssertionError("only streams have events before the last")


def _body(server: Server, event: Event, session: Session | None) -> dict[str, Any]:
    return event.body if session is None else {**event.body, "session": server.sessions.info(session).to_dict()}


def _sse(body: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def _json(body: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None) -> HTTPResponse:
    return HTTPResponse(orjson.dumps(body), status, headers, "application/json")


def _as_server_error(problem: Exception) -> ServerError:
    if isinstance(problem, ServerError):
        return problem
    if isinstance(problem, PayloadTooLarge):
        return _too_large("more than four times that")
    if isinstance(problem, SanicException) and problem.status_code < 500:
        return ServerError(ErrorCode.INVALID_REQUEST, str(problem))
    logger.error("a request failed", exc_info=problem)
    return ServerError(ErrorCode.INTERNAL, f"the request failed inside the server; its log has {logs.request_id.get()}")


def _too_large(size: int | str) -> ServerError:
    return ServerError(ErrorCode.REQUEST_TOO_LARGE, f"the body should be at most {MAX_BODY_BYTES} bytes, got {size}")


def _error(problem: ServerError) -> HTTPResponse:
    return _json(error_body(problem.code, problem.message), status=problem.status)
