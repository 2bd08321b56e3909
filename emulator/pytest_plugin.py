"""pytest fixtures: an endpoint with two instances on the echo engine, and a hand on what goes wrong there.

``pytest_plugins = ["emulator.pytest_plugin"]`` in the topmost conftest makes them known to all tests; in another one,
``from emulator.pytest_plugin import control, emulator`` to those beside it.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.server import Emulator, running_emulator

INSTANCES = 2


class Control:
    """Makes things go wrong in a running emulator, over its ``/_emulator`` paths. See :mod:`emulator.fault_api`."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/_emulator"

    @property
    def instances(self) -> list[str]:
        """The instances that take new requests."""
        return list(self._state()["instances"])

    @property
    def sessions(self) -> dict[str, str]:
        """The instance of each session, as the router knows it."""
        return dict(self._state()["sessions"])

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The faults that still wait for a request."""
        return list(self._state()["faults"])

    def add(self, count: int = 1) -> list[str]:
        """Start instances, and wait until they are in service; gives their names."""
        return list(self._post("/instances", count=count)["instances"])

    def kill(self, instance: str) -> None:
        """End an instance's container at once."""
        self._post(f"/instances/{instance}/kill")

    def drain(self, instance: str) -> None:
        """Begin to take an instance out of service."""
        self._post(f"/instances/{instance}/drain")

    def forget(self, session_id: str) -> None:
        """Make the router forget a session."""
        self._post(f"/sessions/{session_id}/forget")

    def expire(self, session_id: str) -> None:
        """End a session as if its time were over."""
        self._post(f"/sessions/{session_id}/expire")

    def fault(self, **fault: Any) -> None:
        """Let a request meet a fault; the arguments are the fields of :class:`emulator.faults.Fault`."""
        self._post("/faults", **fault)

    def clear(self) -> None:
        """Let nothing more go wrong."""
        self._post("/clear")

    def _state(self) -> dict[str, Any]:
        return self._ask(urllib.request.Request(self._url))

    def _post(self, path: str, **body: Any) -> dict[str, Any]:
        return self._ask(urllib.request.Request(self._url + path, json.dumps(body).encode(), method="POST"))

    def _ask(self, request: urllib.request.Request) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                body: dict[str, Any] = json.load(answer)
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(json.load(error)["error"]) from None


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """An endpoint with two instances on the echo engine."""
    with running_emulator(instances=INSTANCES, engine="echo") as running:
        yield running


@pytest.fixture
def control(emulator: Emulator) -> Iterator[Control]:
    """What makes things go wrong there; afterwards nothing does, and there are as many instances as before."""
    control = Control(emulator.url)
    yield control
    control.clear()
    if (missing := INSTANCES - len(control.instances)) > 0:
        control.add(missing)
