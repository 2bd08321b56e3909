from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.container_process import DIE_WITH_PARENT

from .processes import wait_for_end

PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-I", sys.argv[1], str(os.getpid()), sys.executable, "-c",
                          "import signal; print('ready', flush=True); signal.pause()"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_container_dies_with_an_emulator_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(DIE_WITH_PARENT)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        container = int(parent.stdout.readline())
        assert not wait_for_end(container, seconds=0)
        parent.kill()
    ended = wait_for_end(container)
    if not ended:
        os.kill(container, signal.SIGKILL)
    assert ended


def test_a_container_of_an_emulator_that_is_gone_already_does_not_start(tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = [sys.executable, "-I", str(DIE_WITH_PARENT), "1", "/usr/bin/touch", str(started)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, "process 1 is gone")
    assert not started.exists()
