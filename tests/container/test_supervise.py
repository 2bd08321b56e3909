from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from .conftest import Container, is_back, running_container, wait_until


def server_pid(container: Container) -> int:
    """The process that the supervisor started last."""
    return int(Path(f"/proc/{container.process.pid}/task/{container.process.pid}/children").read_text().split()[-1])


def test_sessions_go_on_after_the_server_was_killed_between_two_turns(tmp_path: Path) -> None:
    with running_container(tmp_path / "log", {"STICKY_ENGINE": "echo"}, "serve") as container:
        session = container.open(messages=[{"role": "system", "content": "be kind"}])
        container.invoke({"inputs": "My dog is called Rex."}, session)
        second = container.invoke({"inputs": "What do dogs eat?"}, session).json
        os.kill(server_pid(container), signal.SIGKILL)
        wait_until(lambda: is_back(container))
        third = container.invoke({"inputs": "What is my dog called?"}, session).json
        assert third["generation"]["text"].endswith("At first: My dog is called Rex.")
        assert third["session"]["turn"] == 3
        assert third["session"]["expires_at"] == second["session"]["expires_at"]
        container.process.send_signal(signal.SIGTERM)
        assert container.process.wait(20) == 0


def test_a_server_that_keeps_dying_ends_the_container(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_container(log, {"STICKY_ENGINE": "echo", "MAX_RESTARTS": "1"}, "serve") as container:
        for _ in range(2):
            wait_until(lambda: is_back(container))
            os.kill(server_pid(container), signal.SIGKILL)
            wait_until(lambda: not is_back(container))
        assert container.process.wait(20) == 128 + signal.SIGKILL
    assert len(re.findall("it is started again in", log.read_text())) == 1
