"""The HTTP side: SageMaker's container contract and the wire contract on Sanic, in front of one engine.

Read top-down: :func:`serve` runs the process; :func:`create_app` makes the application; the rest answers requests.
This is the only place that turns an error into an answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

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
from sanic.response import json as json_response

from container.bodies import Ask, Close, Open, read_invocation, read_json, read_openai
from container.config import ContainerConfig
from container.engine import Engine, Event
from container.errors import ServerError
from container.sessions import Session, SessionTable
from container.transcript import ChatTemplate
from container.turns import Turns

logger = logging.getLogger(__name__)

REAP_SECONDS = 1.0
WATCH_SECONDS = 0.5
DEAD_NOTICE_SECONDS = 2.0
"""How long ``/ping`` says 503 before the process of a dead engine exits: SageMaker asks about every two seconds."""


class Server:
    """One process: its engine, its sessions, and whether it takes traffic."""

    engine: Engine
    sessions: SessionTable
    turns: Turns

    def __init__(self, config: ContainerConfig, make_engine: Callable[[], Engine]) -> None:
        self.config = config
        self.ready = False
        self.draining = False
        self.failed = False
        self.started = int(time.time())
        self._make_engine = make_engine
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, app: Sanic[Any, Any]) -> None:
        """Load the engine while ``/ping`` says 503, then take traffic."""
        try:
            # In a thread: importing an engine takes seconds.
            self.engine = await asyncio.to_thread(self._make_engine)
            await self.engine.start()
        except Exception:
            logger.exception("the engine did not start")
            self._fail(app)
            return
        template = ChatTemplate(self.engine.tokenizer)
        self.sessions = SessionTable(
            template,
            ttl_seconds=self.config.session_ttl_minutes * 60,
            max_sessions=self.config.max_sessions,
            queue=self.config.session_queue,
            served_by=self.config.instance or socket.gethostname(),
            clock=time.time,
        )
        self.turns = Turns(self.engine, self.sessions, timeout_seconds=self.config.turn_timeout_seconds)
        # SGLang puts its own SIGTERM handler on the loop with the first request; the one added last counts.
        self.handle_signals(app)
        self.ready = True
        logger.info("ready: %s", self.engine.name)
        self._tasks = [asyncio.create_task(self._reap()), asyncio.create_task(self._watch(app))]

    async def stop(self) -> None:
        """End the background tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_engine(self) -> None:
        """End the engine, as far as it was started."""
        if hasattr(self, "engine"):
            self.engine.stop()

    def handle_signals(self, app: Sanic[Any, Any]) -> None:
        """SIGTERM (SageMaker's) and SIGINT end the process once the running turns have."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: app.add_task(self.drain(app)))

    async def drain(self, app: Sanic[Any, Any]) -> None:
        """Refuse what is new, wait for the running turns, stop."""
        if self.draining:
            return
        self.draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), self.config.drain_seconds)
        app.stop()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around one request that a drain has to wait for.

        Raises:
            ServerError: this instance takes no requests now.
        """
        if self.draining:
            raise ServerError(ErrorCode.DRAINING, "this instance is going away; open the session again, on another")
        if not self.ready:
            raise ServerError(ErrorCode.ENGINE_UNAVAILABLE, "the model is not loaded")
        self._requests += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    async def reap(self) -> None:
        """End the sessions whose time is over and release their KV."""
        for session_id in self.sessions.reap():
            await self.engine.release(session_id)
            logger.info("session %s expired", session_id)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(REAP_SECONDS)
            await self.reap()

    async def _watch(self, app: Sanic[Any, Any]) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not self.engine.alive():
                logger.error("an engine process died")
                self._fail(app)
                return

    def _fail(self, app: Sanic[Any, Any]) -> None:
        self.ready = False
        self.failed = True
        asyncio.get_running_loop().call_later(DEAD_NOTICE_SECONDS, app.stop)


def serve(config: ContainerConfig, make_engine: Callable[[], Engine]) -> int:
    """Run the server until it is stopped; gives the exit status."""
    server = Server(config, make_engine)
    app = create_app(server)
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
    return 1 if server.failed else 0


def create_app(server: Server) -> Sanic[Any, Any]:
    """The application, with its routes and its life cycle."""
    app: Sanic[Any, Any] = Sanic("sticky", configure_logging=False)
    # Sanic cuts the connection of what is larger; up to here a caller gets an answer that says why.
    app.config.REQUEST_MAX_SIZE = 4 * MAX_BODY_BYTES
    app.config.RESPONSE_TIMEOUT = app.config.REQUEST_TIMEOUT = 3600  # Turns has the limit that counts
    app.config.KEEP_ALIVE_TIMEOUT = 75
    app.config.GRACEFUL_SHUTDOWN_TIMEOUT = 1.0  # by then drain() has waited
    app.config.FALLBACK_ERROR_FORMAT = "json"

    @app.after_server_start
    async def _start(app: Sanic[Any, Any]) -> None:
        server.handle_signals(app)
        app.add_task(server.start(app))

    @app.before_server_stop
    async def _stop(_app: Sanic[Any, Any]) -> None:
        await server.stop()

    @app.get("/ping")
    async def _ping(_request: Request) -> HTTPResponse:
        return HTTPResponse(status=200 if server.ready and not server.draining else 503)

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
            return json_response({"object": "list", "data": [{**model, "max_model_len": server.engine.context_length}]})

    @app.exception(Exception)
    async def _failed(_request: Request, problem: Exception) -> HTTPResponse:
        return _error(_as_server_error(problem))

    return app


async def _invoke(server: Server, request: Request) -> HTTPResponse | None:
    asked = read_invocation(request.headers.get(SESSION_ID_HEADER), _json_of(request))
    match asked:
        case Open():
            return await _open(server, asked)
        case Close():
            await server.turns.close(asked.session_id)
            return json_response({}, headers={CLOSED_SESSION_ID_HEADER: asked.session_id})
        case Ask():
            return await _answer(server, request, asked)


def _json_of(request: Request) -> dict[str, Any]:
    if len(request.body) > MAX_BODY_BYTES:
        raise _too_large(len(request.body))
    return read_json(request.body)


async def _open(server: Server, asked: Open) -> HTTPResponse:
    await server.reap()
    session = await server.turns.open(asked.proposed_id, asked.messages)
    info = server.sessions.info(session)
    logger.info("session %s opened, until %s", info.id, info.expires_at)
    return json_response(
        {"session": info.to_dict()}, headers={SESSION_ID_HEADER: format_new_session(info.id, info.expires_at)}
    )


async def _answer(server: Server, request: Request, ask: Ask) -> HTTPResponse | None:
    async with aclosing(server.turns.answer(ask)) as events:
        # Until the first event an error has a status of its own; after it, an event in the stream.
        first = await anext(events)
        if not ask.stream:
            return json_response(_body(server, *first))
        response = await request.respond(content_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        try:
            await response.send(_sse(_body(server, *first)))
            async for event, session in events:
                await response.send(_sse(_body(server, event, session)))
            await response.send(f"data: {SSE_DONE}\n\n")
        except Exception as problem:
            error = _as_server_error(problem)
            await response.send(_sse(error_body(error.code, error.message)))
        await response.eof()
    return None


def _body(server: Server, event: Event, session: Session | None) -> dict[str, Any]:
    return event.body if session is None else {**event.body, "session": server.sessions.info(session).to_dict()}


def _sse(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, separators=(',', ':'))}\n\n"


def _as_server_error(problem: Exception) -> ServerError:
    if isinstance(problem, ServerError):
        return problem
    if isinstance(problem, PayloadTooLarge):
        return _too_large("more than four times that")
    if isinstance(problem, SanicException) and problem.status_code < 500:
        return ServerError(ErrorCode.INVALID_REQUEST, str(problem))
    logger.error("a request failed", exc_info=problem)
    return ServerError(ErrorCode.INTERNAL, "the request failed inside the server")


def _too_large(size: int | str) -> ServerError:
    return ServerError(ErrorCode.REQUEST_TOO_LARGE, f"the body should be at most {MAX_BODY_BYTES} bytes, got {size}")


def _error(problem: ServerError) -> HTTPResponse:
    return json_response(error_body(problem.code, problem.message), status=problem.status)
