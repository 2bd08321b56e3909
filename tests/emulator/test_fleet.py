from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from emulator.config import EmulatorConfig
from emulator.container_process import ContainerFailed
from emulator.fleet import ROOT, Fleet, container_environment
from emulator.router import Router
from sglang_cpu.environment import SHIM

from .processes import wait_for_end

STANDIN = (sys.executable, str(Path(__file__).with_name("standin.py")))


def make_fleet(behaviour: str = "", **options: Any) -> tuple[Fleet, Router, list[str]]:
    router, lines = Router(), []
    options = {"engine": "echo", "grace_seconds": 20, "startup_seconds": 60} | options
    config = EmulatorConfig(command=STANDIN, environment={"STANDIN": behaviour}, **options)
    return Fleet(config, router, lines.append), router, lines


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


async def ping(url: str) -> dict[str, str]:
    def get() -> dict[str, str]:
        with urllib.request.urlopen(f"{url}/ping", timeout=20) as answer:
            body: dict[str, str] = json.load(answer)
            return body

    return await asyncio.to_thread(get)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_containers_run_while_the_context_lasts() -> None:
    folders: set[str] = set()

    async def test() -> None:
        fleet, router, _ = make_fleet(instances=2, ttl_minutes=0.5)
        async with fleet:
            assert router.instances == ("instance-1", "instance-2") == tuple(fleet.urls)
            seen = {name: await ping(url) for name, url in fleet.urls.items()}
            instances = list(fleet.instances.values())
        assert [each["STICKY_INSTANCE"] for each in seen.values()] == ["instance-1", "instance-2"]
        assert {each["SES_TTL_MIN"] for each in seen.values()} == {"0.5"}
        assert (router.instances, fleet.urls, dict(fleet.instances)) == ((), {}, {})
        assert all(each.exited.done() and is_free(each.port) for each in instances)
        folders.update(each["TMPDIR"] for each in seen.values())

    run(test)
    assert len(folders) == 1
    assert not Path(folders.pop()).exists()


def test_a_container_that_dies_at_the_start_fails_with_its_last_words() -> None:
    async def test() -> None:
        fleet, router, _ = make_fleet("dies", instances=2)
        with pytest.raises(ContainerFailed, match=r"instance-. ended with status 1 before it was ready") as caught:
            await fleet.__aenter__()
        assert "loading the model" in str(caught.value)
        assert "no model here" in str(caught.value)
        assert (router.instances, dict(fleet.instances)) == ((), {})

    run(test)


def test_a_container_that_is_never_ready_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def test() -> None:
        fleet, _, _ = make_fleet("never ready", instances=1, startup_seconds=1)
        with pytest.raises(ContainerFailed, match="instance-1 was not ready after 1 s"):
            await fleet.__aenter__()

    run(test)
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.fleet.PROGRESS_SECONDS", 0.1)

    async def test() -> None:
        fleet, _, lines = make_fleet("never ready", instances=2, startup_seconds=1)
        with pytest.raises(ContainerFailed):
            await fleet.__aenter__()
        assert lines[0] == "0 of 2 containers ready after 0 s"

    run(test)


def test_a_container_that_ignores_sigterm_is_killed() -> None:
    async def test() -> None:
        fleet, _, _ = make_fleet("ignores SIGTERM", instances=1, grace_seconds=0)
        async with fleet:
            [instance] = fleet.instances.values()
        assert instance.exited.result() == -signal.SIGKILL

    run(test)


def test_what_a_container_started_ends_with_it() -> None:
    async def test() -> None:
        fleet, _, _ = make_fleet("has a child", instances=1)
        async with fleet:
            [instance] = fleet.instances.values()
            child = int(instance.log().split("child ")[1])
            assert not wait_for_end(child, seconds=0)
        assert wait_for_end(child)

    run(test)


def test_a_container_that_crashes_goes_out_of_service(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        fleet, router, _ = make_fleet(instances=2)
        async with fleet:
            router.opened("s-1", "instance-1", 4e9)
            instance = fleet.instances["instance-1"]
            os.kill(instance.pid, signal.SIGKILL)
            await asyncio.wait(fleet._watchers, timeout=20, return_when=asyncio.FIRST_COMPLETED)
            assert (router.instances, router.sessions, list(fleet.urls)) == (("instance-2",), {}, ["instance-2"])
        assert "instance-1 ended with status -9" in caplog.text

    run(test)


def test_instances_come_and_go() -> None:
    async def test() -> None:
        fleet, router, _ = make_fleet(instances=1)
        async with fleet:
            assert await fleet.add() == ["instance-2"]
            assert router.instances == ("instance-1", "instance-2")
            gone = fleet.instances["instance-1"]
            await fleet.remove("instance-1")
            assert (router.instances, list(fleet.urls)) == (("instance-2",), ["instance-2"])
            assert gone.exited.done()
            assert await fleet.add() == ["instance-3"]

    run(test)


def test_the_environment_of_an_echo_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = container_environment(EmulatorConfig(engine="echo"), "instance-1", 1234)
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(ROOT), str(ROOT / "client"), "/mine"]
    expected = {"STICKY_ENGINE": "echo", "STICKY_HOST": "127.0.0.1", "STICKY_INSTANCE": "instance-1"}
    assert expected.items() <= environment.items()
    assert environment["SAGEMAKER_BIND_TO_PORT"] == "1234"
    assert not {"SES_TTL_MIN", "SM_SGLANG_DEVICE"} & environment.keys()


def test_the_environment_of_a_container_with_sglang() -> None:
    config = EmulatorConfig(model="org/name", environment={"SM_SGLANG_MAX_TOTAL_TOKENS": "64"})
    environment = container_environment(config, "instance-1", 1234)
    assert environment["SM_SGLANG_MODEL_PATH"] == "org/name"
    assert environment["SM_SGLANG_DEVICE"] == "cpu"
    assert environment["SM_SGLANG_MAX_TOTAL_TOKENS"] == "64"
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(SHIM)
