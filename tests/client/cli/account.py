"""An AWS account as far as a test needs one; moto's is the fixture `session`."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.stub import Stubber

ACCOUNT = "123456789012"


class Stubbed:
    """A boto3 session whose client of one service gives what it is told."""

    region_name = "us-east-1"

    def __init__(self, operation: str, answer: dict[str, Any], service: str) -> None:
        self._client = boto3.client(service, "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        self._stub = Stubber(self._client)
        self._stub.add_response(operation, answer)
        self._stub.activate()

    def client(self, service: str) -> Any:
        return self._client
