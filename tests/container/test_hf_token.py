"""Secrets Manager, as boto3 sees it: a loopback server that speaks its JSON protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from container.hf_token import read_token

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hf-AbCdEf"
SECRETS = {ARN: "hf_secret\n", ARN + "-empty": ""}


class SecretsManager(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert self.headers["X-Amz-Target"] == "secretsmanager.GetSecretValue"
        name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["SecretId"]
        found = name in SECRETS
        body = {"SecretString": SECRETS[name]} if found else {"__type": "AccessDeniedException", "message": "no"}
        data = json.dumps(body).encode()
        self.send_response(200 if found else 400)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def secrets_manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with HTTPServer(("127.0.0.1", 0), SecretsManager) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        yield
        server.shutdown()
        thread.join()


def test_the_token_is_the_secrets_string() -> None:
    assert read_token(ARN) == "hf_secret"


def test_a_secret_that_cannot_be_read_is_named_and_nothing_more() -> None:
    with pytest.raises(RuntimeError, match=r"hf-AbCdEf-other cannot be read: .*AccessDenied"):
        read_token(ARN + "-other")
    with pytest.raises(RuntimeError, match="hf-AbCdEf-empty has no string"):
        read_token(ARN + "-empty")
