"""The contract as a caller sees it, through the public client and boto3 alone.

By default against an emulator that these fixtures start, once with the echo engine and once with SGLang. With
`--endpoint-name NAME` against whatever endpoint of that name boto3 reaches: an emulator elsewhere, or AWS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from sagemaker_sticky import StickyClient

from emulator import running_emulator

GIVEN = "given endpoint"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "endpoint" in metafunc.fixturenames:
        if metafunc.config.getoption("--endpoint-name"):
            engines = [GIVEN]
        else:
            engines = ["echo", pytest.param("sglang", marks=[pytest.mark.sglang, pytest.mark.timeout(600)])]
        metafunc.parametrize("endpoint", engines, indirect=True, scope="session")


class Endpoint:
    """Where to send requests, and as what."""

    def __init__(self, name: str, runtime: Any) -> None:
        self.name = name
        self.runtime = runtime
        """A plain boto3 client."""
        self.client = StickyClient(name, runtime=runtime)


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    config = Config(read_timeout=120, retries={"total_max_attempts": 1})
    if request.param == GIVEN:
        yield Endpoint(request.config.getoption("--endpoint-name"), boto3.client("sagemaker-runtime", config=config))
        return
    with running_emulator(instances=2, engine=request.param) as emulator:
        runtime = boto3.client(
            "sagemaker-runtime",
            endpoint_url=emulator.url,
            region_name=emulator.config.region,
            aws_access_key_id="emulator",
            aws_secret_access_key="emulator",
            config=config,
        )
        yield Endpoint(emulator.config.endpoint_name, runtime)
        runtime.close()


@pytest.fixture
def client(endpoint: Endpoint) -> StickyClient:
    return endpoint.client
