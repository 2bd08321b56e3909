"""Processes that serve on loopback while a context lasts."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 10.0


def free_port() -> int:
    """A port on loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def serving(
    command: Sequence[str], url: str, *, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the context ends; entered when ``url`` answers anything.

    Raises:
        RuntimeError: it ended, or did not answer in time; the message has its log.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait(process, url, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError:
            return  # an answer all the same
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{process.args} does not serve {url}:\n{log.read_text(errors='replace')[-4000:]}")
