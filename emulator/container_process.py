"""One container process: started on a loopback port, watched, stopped with everything it started."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from sys import executable

import aiohttp

DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
LOG_BYTES = 64 * 1024
"""How much of a container's output is kept, in bytes."""
PING_SECONDS = 2.0
"""How long SageMaker waits for ``/ping``."""
PING_EVERY_SECONDS = 0.1
LAST_WORDS_SECONDS = 1.0
"""How long the output of a process that ended is waited for."""
SWEEP_SECONDS = 5.0
"""How long the system may take to end a process that was killed."""


class ContainerFailed(Exception):
    """A container died, or was not ready in time; the message ends with the last lines of its output."""


class ContainerProcess:
    """A running container process. It leads a process group of its own, so that Ctrl-C reaches the emulator alone."""

    def __init__(self, name: str, port: int, process: Process, output: Output) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.pid = process.pid
        self._process = process
        self._output = output
        self.exited = asyncio.create_task(process.wait())
        """Done when the process is gone; its result is the exit status."""

    @classmethod
    async def start(
        cls, name: str, port: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> ContainerProcess:
        """Run ``command`` as a container that will listen on ``port``."""
        output, write_end = await Output.open()
        try:
            process = await asyncio.create_subprocess_exec(
                *(executable, "-I", str(DIE_WITH_PARENT), str(os.getpid()), *command),
                env=environment,
                stdin=DEVNULL,
                stdout=write_end,
                stderr=write_end,
                start_new_session=True,
            )
        except BaseException:
            output.close()
            raise
        finally:
            os.close(write_end)
        return cls(name, port, process, output)

    async def until_ready(self, client: aiohttp.ClientSession, *, seconds: float) -> None:
        """Wait until ``/ping`` answers 200.

        Raises:
            ContainerFailed: the process died, or ``seconds`` went by.
        """
        try:
            async with asyncio.timeout(seconds):
                while not await self._answers_ping(client):
                    await asyncio.wait({self.exited}, timeout=PING_EVERY_SECONDS)
                    if self.exited.done():
                        await self._output.until_end(seconds=LAST_WORDS_SECONDS)
                        end = f"ended with status {self.exited.result()} before it was ready"
                        raise ContainerFailed(f"{self.name} {end}\n{self.log()}")
        except TimeoutError:
            raise ContainerFailed(f"{self.name} was not ready after {seconds:g} s\n{self.log()}") from None

    def terminate(self) -> None:
        """Send SIGTERM: a container then refuses what is new, finishes what runs, and ends."""
        if not self.exited.done():
            self._process.terminate()

    async def stop(self, *, grace_seconds: float) -> None:
        """Send SIGTERM, after ``grace_seconds`` SIGKILL (0: at once), and end what is left of its process group."""
        if not self.exited.done() and grace_seconds > 0:
            self.terminate()
            await asyncio.wait({self.exited}, timeout=grace_seconds)
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses to signal a group of zombies
            os.killpg(self.pid, signal.SIGKILL)
        await asyncio.wait({self.exited}, timeout=SWEEP_SECONDS)
        await self._output.until_end(seconds=LAST_WORDS_SECONDS)
        self._output.close()

    def log(self) -> str:
        """The last lines that the container wrote."""
        return self._output.kept.decode(errors="replace").rstrip()

    async def _answers_ping(self, client: aiohttp.ClientSession) -> bool:
        try:
            async with client.get(f"{self.url}/ping", timeout=aiohttp.ClientTimeout(total=PING_SECONDS)) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


class Output(asyncio.Protocol):
    """The last of what a container and its children write.

    A pipe of our own: asyncio takes a process for running while anyone, such as a child it left, holds asyncio's pipe.
    """

    def __init__(self) -> None:
        self.kept = bytearray()
        self._ended = asyncio.Event()
        self._transport: asyncio.ReadTransport

    @classmethod
    async def open(cls) -> tuple[Output, int]:
        """The reading side, and the file descriptor to write to, which the caller closes."""
        read_end, write_end = os.pipe()
        _, output = await asyncio.get_running_loop().connect_read_pipe(cls, os.fdopen(read_end, "rb", buffering=0))
        return output, write_end

    async def until_end(self, *, seconds: float) -> None:
        """Wait until all writers are gone, for ``seconds`` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    def close(self) -> None:
        """Read no more."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.ReadTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self.kept += data
        del self.kept[:-LOG_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._ended.set()
