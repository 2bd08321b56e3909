"""Servers under measurement: processes of their own, on loopback, ended by their process id."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv" / "peers"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers ``/ping`` or ``/health`` with 200."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """Processor time that the process has used, in seconds, from the scheduler's own count (Linux)."""
        tasks = Path(f"/proc/{self.pid}/task")
        return sum(int((each / "schedstat").read_text().split()[0]) for each in tasks.iterdir()) / 1e9

    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], *, port: int, ready: str) -> Iterator[Server]:
    """Start ``command``, wait until ``GET ready`` answers 200, and end it with all that it started."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        variables = {**os.environ, **environment, "TMPDIR": folder, "SESSION_JOURNAL_DIR": f"{folder}/sessions"}
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log, cwd=ROOT, start_new_session=True)
        try:
            deadline = time.monotonic() + 300
            while not _is_ready(port, ready):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"{command} did not start:\n{log.read()[-2000:]}")
                time.sleep(0.2)
            yield Server(f"http://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def container(**settings: str) -> Iterator[Server]:
    """Our container, on the echo engine where ``settings`` name no other."""
    port = free_port()
    environment = {
        "STICKY_ENGINE": "echo",
        "STICKY_HOST": "127.0.0.1",
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}",
        **settings,
    }
    with running([sys.executable, "-m", "container", "run"], environment, port=port, ready="/ping") as server:
        yield server


@contextmanager
def peer_sessions() -> Iterator[Server]:
    """The FastAPI app with AWS's session library."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("peer_sessions.py")), str(port)]
    with running(command, {"PYTHONPATH": str(PEERS)}, port=port, ready="/ping") as server:
        yield server


@contextmanager
def launch_server(flags: Sequence[str], environment: Mapping[str, str]) -> Iterator[Server]:
    """SGLang's own server."""
    port = free_port()
    command = [sys.executable, "-m", "sglang.launch_server", "--host", "127.0.0.1", "--port", str(port), *flags]
    with running(command, environment, port=port, ready="/health") as server:
        yield server


def free_port() -> int:
    """A TCP port on loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_ready(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
