"""``python -m container serve``: keep the server of this container running.

A server that dies, or whose engine does, is started again after a pause that doubles; sessions go on from the journal.
After too many deaths the container ends with the server's status, and SageMaker replaces it. SIGTERM goes to the
server, which drains. The pauses and the counting are tenacity's.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType

import tenacity

from container import cuda
from container.lifecycle import WRONG_CONFIGURATION

logger = logging.getLogger(__name__)

FINAL = (0, WRONG_CONFIGURATION)
"""Exit statuses after which no start follows."""
LONGEST_PAUSE_SECONDS = 30


class Supervisor:
    """Runs one command until it ends by itself with status 0, is told to stop, or has died too often."""

    def __init__(self, command: list[str], environment: Mapping[str, str], *, max_restarts: int) -> None:
        self._command = command
        self._environment = environment
        self._max_restarts = max_restarts
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()

    def run(self) -> int:
        """Run the command, again and again where needed; gives the last exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._pass_on)
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._max_restarts + 1),
            wait=tenacity.wait_exponential(multiplier=0.5, max=LONGEST_PAUSE_SECONDS),
            sleep=tenacity.sleep_using_event(self._stopping),
            retry=tenacity.retry_if_result(lambda status: status not in FINAL and not self._stopping.is_set()),
            before_sleep=self._report,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else 1,
        )
        status: int = retrying(self._once)
        return 0 if status == 0 else status if status > 0 else 128 - status

    def _once(self) -> int:
        if self._stopping.is_set():
            return 0
        # A session of its own: what the server leaves behind when it dies can be ended with it.
        self._process = subprocess.Popen(self._command, env=self._environment, start_new_session=True)
        status = self._process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return status

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _report(self, state: tenacity.RetryCallState) -> None:
        status = state.outcome.result() if state.outcome else None
        pause = state.next_action.sleep if state.next_action else 0
        logger.error("the server died with status %s; it is started again in %.1f s", status, pause)


def supervise(*, max_restarts: int) -> int:
    """Keep ``python -m container run`` running; gives the exit status."""
    cuda.run_aws_step()
    command = [sys.executable, "-m", "container", "run"]
    return Supervisor(command, cuda.with_compatibility(os.environ), max_restarts=max_restarts).run()
