"""One server process: its engine, its sessions, whether it takes traffic, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from sagemaker_sticky_protocol import ErrorCode

from container import logs
from container.config import ContainerConfig
from container.engine import Engine
from container.errors import ServerError
from container.journal import Journal
from container.metrics import EMF_SECONDS, Metrics
from container.sessions import SessionTable
from container.transcript import ChatTemplate
from container.turns import Turns

logger = logging.getLogger(__name__)

KV_TOKENS_A_SESSION, MIN_SESSIONS = 256, 16
"""For the default number of sessions; see :attr:`ContainerConfig.max_sessions`."""
REAP_SECONDS = 1.0
WATCH_SECONDS = 0.5
WRONG_CONFIGURATION = 2
"""Exit status: starting again would not help."""
DEAD_NOTICE_SECONDS = 2.0
"""How long ``/ping`` says 503 before the process of a dead engine exits: SageMaker asks about every two seconds."""


class Running:
    """Counts the requests that run now: a context manager around each of them."""

    def __init__(self) -> None:
        self._count = 0
        self.idle = asyncio.Event()
        """Set while there is none."""
        self.idle.set()

    def __enter__(self) -> None:
        self._count += 1
        self.idle.clear()

    def __exit__(self, *_problem: object) -> None:
        self._count -= 1
        if not self._count:
            self.idle.set()


class Server:
    """One process: its engine, its sessions, and whether it takes traffic."""

    engine: Engine
    sessions: SessionTable
    turns: Turns

    def __init__(self, config: ContainerConfig, make_engine: Callable[[], Engine], stop: Callable[[], None]) -> None:
        self.config = config
        self._make_engine = make_engine
        self._stop = stop
        """Ends the process's HTTP server."""
        self.ready = False
        self.draining = False
        self.exit_status = 0
        self.started = int(time.time())
        self.metrics = Metrics(lambda: len(self.sessions) if self.ready else 0)
        self._run_id = secrets.token_hex(4)
        self._request_numbers = count(1)
        self._running = Running()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Load the engine while ``/ping`` says 503, then take traffic."""
        try:
            # In a thread: importing an engine takes seconds.
            self.engine = await asyncio.to_thread(self._make_engine)
            await self.engine.start()
        except ValueError as problem:
            logger.error("configuration: %s", problem)
            self._fail(WRONG_CONFIGURATION)
            return
        except Exception:
            logger.exception("the engine did not start")
            self._fail()
            return
        self.sessions = self._make_sessions()
        self.turns = Turns(self.engine, self.sessions, self.metrics, timeout_seconds=self.config.turn_timeout_seconds)
        # SGLang puts its own SIGTERM handler on the loop with the first request; the one added last counts.
        self.handle_signals()
        # What is there now stays: the collector need not walk through it again, which with SGLang loaded takes 100 ms.
        gc.collect()
        gc.freeze()
        self.ready = True
        logger.info("ready: %s", self.engine.name)
        self._tasks += [asyncio.create_task(each) for each in (self._reap(), self._watch(), self._emit_metrics())]

    def _make_sessions(self) -> SessionTable:
        config = self.config
        journal = None
        if config.session_journal == "on":
            try:
                journal = Journal(Path(config.session_journal_directory))
                logger.info("%d sessions are in the journal", journal.sweep(time.time()))
            except OSError as problem:
                logger.error("no journal, so sessions will not survive a restart: %s", problem)
        return SessionTable(
            ChatTemplate(self.engine.tokenizer),
            ttl_seconds=config.session_ttl_minutes * 60,
            max_sessions=config.max_sessions or max(MIN_SESSIONS, self.engine.kv_tokens // KV_TOKENS_A_SESSION),
            queue=config.session_queue,
            ranks=self.engine.ranks,
            served_by=config.instance or socket.gethostname(),
            clock=time.time,
            journal=journal,
            count=self.metrics.session,
        )

    async def stop(self) -> None:
        """End the background tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_engine(self) -> None:
        """End the engine, as far as it was started."""
        if hasattr(self, "engine"):
            self.engine.stop()

    def handle_signals(self) -> None:
        """SIGTERM (SageMaker's) and SIGINT end the process once the running turns have."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_drain)

    def _begin_drain(self) -> None:
        # At once, not in the task: a request in the same round of the loop is refused already.
        if not self.draining:
            self.draining = True
            self._tasks.append(asyncio.create_task(self._drain()))

    async def _drain(self) -> None:
        """Wait for the running requests, then stop; what is new is refused meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._running.idle.wait(), self.config.drain_seconds)
        self._stop()

    def request(self) -> Running:
        """A context manager around one request, for which a drain has to wait.

        Raises:
            ServerError: this instance takes no requests now.
        """
        if self.draining:
            raise ServerError(ErrorCode.DRAINING, "this instance is going away; open the session again, on another")
        if not self.ready:
            raise ServerError(ErrorCode.ENGINE_UNAVAILABLE, "the model is not loaded")
        logs.request_id.set(f"{self._run_id}-{next(self._request_numbers)}")
        return self._running

    async def reap(self) -> None:
        """End the sessions whose time is over and release their KV."""
        for session_id in self.sessions.reap():
            await self.engine.release(session_id)
            logger.info("session %s expired", session_id)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(REAP_SECONDS)
            await self.reap()

    async def _emit_metrics(self) -> None:
        while self.config.metrics_namespace:
            await asyncio.sleep(EMF_SECONDS)
            sys.stdout.write(self.metrics.emf(self.config.metrics_namespace) + "\n")
            sys.stdout.flush()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not self.engine.alive():
                logger.error("an engine process died")
                self._fail()
                return

    def _fail(self, status: int = 1) -> None:
        self.ready = False
        self.exit_status = status
        asyncio.get_running_loop().call_later(DEAD_NOTICE_SECONDS, self._stop)
