"""The endpoint's instances: container processes, in service with the router once their ``/ping`` answers 200."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import aiohttp

from emulator.config import EmulatorConfig
from emulator.container_process import SWEEP_SECONDS, ContainerProcess
from emulator.router import Router
from sglang_cpu.environment import SHIM, sglang_environment

ROOT = Path(__file__).parent.parent
PROGRESS_SECONDS = 5.0

logger = logging.getLogger(__name__)


class Fleet:
    """An async context manager: entering starts the containers and waits for them, leaving stops them all.

    Args:
        config: how many containers of which kind.
        router: told which instances are in service.
        report: takes a line for a person who waits.

    Raises:
        ContainerFailed: on entering or adding, with the last lines of the container's output.
    """

    def __init__(self, config: EmulatorConfig, router: Router, report: Callable[[str], None]) -> None:
        self.urls: dict[str, str] = {}
        """The base URL of each container in service, by instance."""
        self._config = config
        self._router = router
        self._report = report
        self._instances: dict[str, ContainerProcess] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._started = 0
        self._temporary = ""

    @property
    def instances(self) -> Mapping[str, ContainerProcess]:
        """The container processes, by instance."""
        return self._instances

    async def __aenter__(self) -> Fleet:
        # SGLang leaves a file for each of its sockets behind: a folder of our own, removed at the end.
        self._temporary = tempfile.mkdtemp(prefix="sagemaker-sticky-")
        try:
            await self.add(self._config.instances)
        except BaseException:
            shutil.rmtree(self._temporary, ignore_errors=True)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(list(self._instances.values()), grace_seconds=self._config.grace_seconds)
        if self._watchers:
            await asyncio.wait(self._watchers, timeout=SWEEP_SECONDS)
        shutil.rmtree(self._temporary, ignore_errors=True)

    async def add(self, count: int = 1) -> list[str]:
        """Start containers and take them into service when all are ready; gives their instances' names."""
        fresh: list[ContainerProcess] = []
        try:
            for _ in range(count):
                fresh.append(await self._launch())
            await self._until_ready(fresh)
        except BaseException:
            await self._end(fresh, grace_seconds=self._config.grace_seconds)
            raise
        for instance in fresh:
            self.urls[instance.name] = instance.url
            self._router.add_instance(instance.name)
            watcher = asyncio.create_task(self._watch(instance))
            self._watchers.add(watcher)
            watcher.add_done_callback(self._watchers.discard)
        return [instance.name for instance in fresh]

    async def remove(self, name: str) -> None:
        """Take an instance out of service and stop its container, as scale-in does: its sessions are lost."""
        await self._end([self._instances[name]], grace_seconds=self._config.grace_seconds)

    async def kill(self, name: str) -> None:
        """Let an instance fail: its container dies at once, in the middle of whatever it does."""
        await self._end([self._instances[name]], grace_seconds=0)

    def drain(self, name: str) -> None:
        """Begin to take an instance out of service: nothing new goes there, its container refuses turns and ends."""
        self._router.retire_instance(name)
        self._instances[name].terminate()

    async def _launch(self) -> ContainerProcess:
        self._started += 1
        name = f"instance-{self._started}"
        port = _free_port(taken={each.port for each in self._instances.values()})
        environment = container_environment(self._config, name, port) | {
            "TMPDIR": self._temporary,
            # Each instance has a disk of its own.
            "SESSION_JOURNAL_DIR": str(Path(self._temporary) / name),
        }
        instance = await ContainerProcess.start(name, port, self._config.command, environment)
        self._instances[name] = instance
        return instance

    async def _until_ready(self, instances: list[ContainerProcess]) -> None:
        begun = time.monotonic()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as client:
            seconds = self._config.startup_seconds
            waiting = {asyncio.create_task(each.until_ready(client, seconds=seconds)) for each in instances}
            everyone = set(waiting)
            try:
                while waiting:
                    done, waiting = await asyncio.wait(
                        waiting, timeout=PROGRESS_SECONDS, return_when=asyncio.FIRST_EXCEPTION
                    )
                    for each in done:
                        each.result()
                    if waiting:
                        ready, elapsed = len(everyone) - len(waiting), time.monotonic() - begun
                        self._report(f"{ready} of {len(everyone)} containers ready after {elapsed:.0f} s")
            finally:
                for each in everyone:
                    each.cancel()
                await asyncio.gather(*everyone, return_exceptions=True)

    async def _watch(self, instance: ContainerProcess) -> None:
        """Take a container that ends by itself out of service."""
        status = await asyncio.shield(instance.exited)
        if self._instances.pop(instance.name, None) is not None:
            logger.error("%s ended with status %d; its last lines:\n%s", instance.name, status, instance.log())
            self._out_of_service(instance.name)
            await instance.stop(grace_seconds=0)

    def _out_of_service(self, name: str) -> None:
        self.urls.pop(name, None)
        self._router.remove_instance(name)

    async def _end(self, instances: list[ContainerProcess], *, grace_seconds: float) -> None:
        for instance in instances:
            del self._instances[instance.name]
            self._out_of_service(instance.name)
        await asyncio.gather(*(each.stop(grace_seconds=grace_seconds) for each in instances))


def container_environment(config: EmulatorConfig, name: str, port: int) -> dict[str, str]:
    """The environment of a container: the emulator's own, and what a container on this machine needs.

    Args:
        config: engine, model and life of a session; its ``environment`` wins.
        name: of the instance, as it stands in ``served_by``.
        port: on which the container will listen.
    """
    variables = dict(os.environ)
    paths = [str(ROOT), str(ROOT / "client")]
    variables |= {
        "STICKY_ENGINE": config.engine,
        "STICKY_HOST": "127.0.0.1",
        "STICKY_INSTANCE": name,
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
    }
    if config.ttl_minutes is not None:
        variables["SES_TTL_MIN"] = f"{config.ttl_minutes:g}"
    if config.engine == "sglang":
        paths.insert(0, str(SHIM))
        variables |= sglang_environment(model=config.model, processes=config.instances)
    if variables.get("PYTHONPATH"):
        paths.append(variables["PYTHONPATH"])
    return {**variables, "PYTHONPATH": os.pathsep.join(paths), **config.environment}


def _free_port(*, taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port
