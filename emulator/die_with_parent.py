"""Become a container process that ends with the emulator, however the emulator ends.

The fleet runs this file by its path: ``python -I die_with_parent.py PID COMMAND...``, PID being the emulator's. It asks
Linux to kill this process when its parent dies, then turns into COMMAND, which keeps that order (prctl(2),
PR_SET_PDEATHSIG). SGLang's own worker processes ask the same of theirs. Other systems have no such order: there, a
SIGKILL of the emulator leaves its containers behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for the signal and run ``command`` in place of this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the order was given
        sys.exit(f"process {parent} is gone")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
