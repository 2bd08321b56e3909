"""The client against real containers in which things go wrong on demand."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from sagemaker_sticky import StickyClient

from emulator import Emulator
from emulator.pytest_plugin import control, emulator

__all__ = ["control", "emulator"]


def make_runtime(emulator: Emulator, **settings: Any) -> Any:
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=emulator.url,
        region_name=emulator.config.region,
        aws_access_key_id="emulator",
        aws_secret_access_key="emulator",
        config=Config(retries={"total_max_attempts": 1}, **settings),
    )


def is_ready(url: str) -> bool:
    """Whether a container's /ping answers 200."""
    try:
        with urllib.request.urlopen(f"{url}/ping", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


@pytest.fixture
def make_client() -> Iterator[Callable[..., StickyClient]]:
    """A client of an emulator; options are botocore's."""
    made = []

    def make(emulator: Emulator, **settings: Any) -> StickyClient:
        made.append(make_runtime(emulator, **settings))
        return StickyClient(emulator.config.endpoint_name, runtime=made[-1])

    yield make
    for runtime in made:
        runtime.close()


@pytest.fixture
def client(emulator: Emulator, make_client: Callable[..., StickyClient]) -> StickyClient:
    return make_client(emulator)
