"""What the examples show, they do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from emulator import Emulator
from emulator.pytest_plugin import Control

ROOT = Path(__file__).parents[2]
REX = "You said: My dog is called Rex."
REMEMBERED = "You said: What is my dog called? | At first: My dog is called Rex."


def output(emulator: Emulator, name: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
        env={**os.environ, **emulator.environment, "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_openai(emulator: Emulator) -> None:
    first, second, usage = output(emulator, "openai_client.py")
    assert (first, second) == (REX, REMEMBERED)
    assert usage.endswith("prompt tokens")


def test_langchain(emulator: Emulator, control: Control) -> None:
    first, _, third, usage = output(emulator, "langchain_chat.py")
    assert (first, third) == (REX, REMEMBERED)
    assert "'cache_read': " in usage
    assert "'cache_read': 0" not in usage, "the third turn computed what is new alone"
    assert control.sessions == {}


@pytest.fixture
def front_end(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    from examples.fastapi_front_end import app

    with TestClient(app) as browser:
        yield browser


def test_fastapi(front_end: TestClient, control: Control) -> None:
    begun = front_end.post("/conversations").json()
    assert begun["expires_at"]
    turns = f"/conversations/{begun['id']}/turns"
    assert front_end.post(turns, json={"text": "My dog is called Rex."}).text == REX
    assert front_end.post(turns, json={"text": "What is my dog called?"}).text == REMEMBERED
    assert front_end.post(turns, json={"text": ""}).status_code == 400
    assert front_end.delete(f"/conversations/{begun['id']}").status_code == 204
    assert control.sessions == {}


def test_fastapi_tells_a_lost_session(front_end: TestClient, control: Control) -> None:
    begun = front_end.post("/conversations").json()
    control.expire(begun["id"])
    lost = front_end.post(f"/conversations/{begun['id']}/turns", json={"text": "Hello?"})
    assert (lost.status_code, lost.json()["code"]) == (410, "session_expired")
