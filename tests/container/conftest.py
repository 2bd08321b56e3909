"""A container process as SageMaker runs it, and a plain HTTP client for it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sagemaker_sticky_protocol import SESSION_ID_HEADER

ROOT = Path(__file__).parents[2]


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]

    @property
    def message(self) -> str:
        return self.json["error"]["message"]

    @property
    def events(self) -> list[Any]:
        """The stream's events; the last must be [DONE]."""
        *data, done = [line.removeprefix("data: ") for line in self.body.decode().split("\n") if line]
        assert done == "[DONE]"
        return [json.loads(each) for each in data]


class Container:
    """A running `python -m container run`, or `serve`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def invoke(self, body: Any, session: str | None = None) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/invocations", data, {} if session is None else {SESSION_ID_HEADER: session})

    def open(self, **body: Any) -> str:
        answer = self.invoke({"requestType": "NEW_SESSION", **body}, "NEW_SESSION")
        assert answer.status == 200, answer.body
        return answer.json["session"]["id"]

    def ping(self) -> int:
        return self.request("GET", "/ping").status


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running_container(log: Path, settings: Mapping[str, str], command: str = "run") -> Iterator[Container]:
    """A container that is ready; killed at the end, if it still runs."""
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [*settings.get("PYTHONPATH", "").split(os.pathsep), str(ROOT), str(ROOT / "client")]
        ),
        "SESSION_JOURNAL_DIR": str(log.parent / "journal"),
        "STICKY_HOST": "127.0.0.1",
        "STICKY_INSTANCE": "i-0",
        "SAGEMAKER_BIND_TO_PORT": str(port),
        **{name: value for name, value in settings.items() if name != "PYTHONPATH"},
    }
    with log.open("wb") as output:
        arguments = [sys.executable, "-m", "container", command]
        process = subprocess.Popen(arguments, env=environment, stdout=output, stderr=output, cwd=log.parent)
    container = Container(process, port, log)
    try:
        wait_until(lambda: is_ready(container), seconds=240)
        yield container
    finally:
        process.kill()
        process.wait()


def is_ready(container: Container) -> bool:
    assert container.process.poll() is None, container.log.read_text()[-3000:]
    try:
        return container.ping() == 200
    except ConnectionRefusedError:
        return False


def is_back(container: Container) -> bool:
    """Whether a container that may be down answers again."""
    try:
        return container.ping() == 200
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Poll another process; fails loudly when it never gets there."""
    deadline = time.monotonic() + seconds
    pause = 0.01
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(pause)  # the other process gives no event to wait for
        pause = min(pause * 1.5, 0.5)


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A container on the echo engine, for tests that leave it as it was."""
    with running_container(tmp_path_factory.mktemp("echo") / "log", {"STICKY_ENGINE": "echo"}) as container:
        yield container


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Container]]:
    """Start a container on the echo engine with other settings."""
    running = []

    def start(**settings: str) -> Container:
        context = running_container(tmp_path / f"log-{len(running)}", {"STICKY_ENGINE": "echo", **settings})
        running.append(context)
        return context.__enter__()

    yield start
    for context in running:
        context.__exit__(None, None, None)
