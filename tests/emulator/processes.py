"""What a test asks of processes it did not start itself. Linux."""

from __future__ import annotations

import os
import select
from pathlib import Path


def wait_for_end(pid: int, *, seconds: float = 30) -> bool:
    """Whether process `pid` is gone, or goes within `seconds`; a zombie is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
