"""The whole emulator, served: fleet, router and runtime API on one port, by a coroutine or in a thread."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from aiohttp import web

from emulator.app import build_app
from emulator.config import EmulatorConfig
from emulator.fault_api import add_fault_api
from emulator.faults import Faults
from emulator.fleet import Fleet
from emulator.loop_thread import in_thread
from emulator.router import Router

HOST = "127.0.0.1"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator. Its parts live on its event loop: from another thread, go through :meth:`call`."""

    config: EmulatorConfig
    url: str
    """What boto3 takes as ``endpoint_url``."""
    router: Router
    fleet: Fleet
    loop: asyncio.AbstractEventLoop

    @property
    def environment(self) -> dict[str, str]:
        """The variables under which an unmodified boto3 finds this emulator; the credentials are not looked at."""
        return {
            "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": self.url,
            "AWS_ACCESS_KEY_ID": "emulator",
            "AWS_SECRET_ACCESS_KEY": "emulator",
            "AWS_REGION": self.config.region,
            "AWS_DEFAULT_REGION": self.config.region,
        }

    def call(self, work: Coroutine[Any, Any, T], *, timeout_seconds: float = 60.0) -> T:
        """Run a coroutine of the fleet from another thread, as in ``emulator.call(emulator.fleet.add())``."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_seconds)


@asynccontextmanager
async def serving(config: EmulatorConfig, report: Callable[[str], None] = print) -> AsyncIterator[Emulator]:
    """Run an emulator on this event loop.

    Raises:
        OSError: the port is taken; found before any container starts.
        ContainerFailed: a container did not become ready.
    """
    router = Router(
        routing_strategy=config.routing_strategy,
        prefix_concurrency_threshold=config.prefix_concurrency_threshold,
        readings=config.readings,
    )
    faults = Faults()
    with bound_socket(config.port) as listener:
        async with Fleet(config, router, report) as fleet:
            app = build_app(config, router, fleet.urls, faults)
            add_fault_api(app, router, fleet, faults)
            async with listening(app, listener):
                url = f"http://{HOST}:{listener.getsockname()[1]}"
                yield Emulator(config, url, router, fleet, asyncio.get_running_loop())


@asynccontextmanager
async def listening(app: web.Application, listener: socket.socket) -> AsyncIterator[None]:
    """Serve ``app`` on a bound socket; a caller who disconnects cancels the handler, and so the container's work."""
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, auto_decompress=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()


def running_emulator(*, report: Callable[[str], None] = print, **options: Any) -> AbstractContextManager[Emulator]:
    """Run an emulator in a thread of its own while the context lasts.

    Args:
        report: takes a line for a person who waits.
        options: fields of :class:`EmulatorConfig`, such as ``instances=2, engine="echo"``.

    Raises:
        ValueError: from the configuration, with every problem found.
        ContainerFailed: a container did not become ready.
    """
    config = EmulatorConfig(**options)
    return in_thread(lambda: serving(config, report))


def bound_socket(port: int) -> socket.socket:
    """A socket on a loopback port, 0 for a free one, which does not listen yet.

    Raises:
        OSError: the port is taken.
    """
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except BaseException:
        listener.close()
        raise
    return listener
