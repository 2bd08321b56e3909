from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from tests.client.house import House
from tests.client.wire import Wire


@pytest.fixture
def house(wire: Wire, credentials: None) -> House:
    wire.handle = House()
    return wire.handle


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")
