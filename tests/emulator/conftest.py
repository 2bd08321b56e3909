"""An emulator's app in front of scripted containers, on loopback, with an unmodified boto3."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from random import Random
from typing import Any

import boto3
import pytest
from botocore.config import Config

from emulator.app import build_app
from emulator.config import EmulatorConfig
from emulator.loop_thread import in_thread
from emulator.router import Router
from emulator.server import HOST, bound_socket, listening

from .scripted import Endpoint, ScriptedContainer, serving_container

NOW = 1_800_000_000.0


@asynccontextmanager
async def serving_endpoint(count: int, config: EmulatorConfig) -> AsyncIterator[Endpoint]:
    containers = [ScriptedContainer(f"instance-{number}") for number in range(1, count + 1)]
    now = [NOW]
    router = Router(
        routing_strategy=config.routing_strategy,
        prefix_concurrency_threshold=config.prefix_concurrency_threshold,
        readings=config.readings,
        clock=lambda: now[0],
        random=Random(1),
    )
    async with AsyncExitStack() as stack:
        urls = {each.name: await stack.enter_async_context(serving_container(each)) for each in containers}
        for name in urls:
            router.add_instance(name)
        listener = stack.enter_context(bound_socket(0))
        await stack.enter_async_context(listening(build_app(config, router, urls), listener))
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        yield Endpoint(url, router, containers, urls, boto3_client(url), now)


def boto3_client(url: str) -> Any:
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="emulator",
        aws_secret_access_key="emulator",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=30, connect_timeout=5),
    )


@pytest.fixture
def make_endpoint() -> Iterator[Callable[..., Endpoint]]:
    """Make an endpoint of scripted containers; options are fields of EmulatorConfig."""
    with ExitStack() as stack:

        def make(containers: int = 1, **options: Any) -> Endpoint:
            config = EmulatorConfig(**options)
            endpoint = stack.enter_context(in_thread(lambda: serving_endpoint(containers, config)))
            stack.callback(endpoint.client.close)
            return endpoint

        yield make


@pytest.fixture
def endpoint(make_endpoint: Callable[..., Endpoint]) -> Endpoint:
    return make_endpoint()
