"""A real boto3 client against a loopback server, and nothing of the machine's own AWS settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from sagemaker_sticky import StickyClient
from sagemaker_sticky._transport import runtime_config

from tests.client.wire import Wire, make_server


@pytest.fixture(autouse=True)
def no_aws_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as a user gets it."""
    from scripts.check_wheel import build  # not above: all other tests here run wherever the client does

    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[Wire, str]]:
    wire = Wire()
    server = make_server(wire)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield wire, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def wire(served: tuple[Wire, str]) -> Wire:
    wire, _ = served
    wire.reset()
    return wire


@pytest.fixture
def endpoint_url(served: tuple[Wire, str]) -> str:
    _, url = served
    return url


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, endpoint_url: str) -> None:
    """The environment of somebody whose AWS is the loopback server."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint_url)


@pytest.fixture(scope="session")
def runtime(served: tuple[Wire, str]) -> Iterator[Any]:
    session = boto3.session.Session("test", "test", region_name="eu-west-1")
    runtime = session.client("sagemaker-runtime", endpoint_url=served[1], config=runtime_config())
    yield runtime
    runtime.close()


@pytest.fixture
def client(wire: Wire, runtime: Any) -> StickyClient:
    return StickyClient("house", runtime=runtime)
