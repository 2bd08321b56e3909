"""CUDA's forward compatibility: an image whose CUDA is newer than the host's driver brings a user-mode driver along.

It must be used on older drivers and must not on newer ones, so it can only be decided where the container runs.
Source: AWS, "SageMaker inference: GPU drivers"; the entrypoint of AWS's SGLang image takes the same step.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

logger = logging.getLogger(__name__)

COMPAT = Path("/usr/local/cuda/compat")
DRIVER = Path("/proc/driver/nvidia/version")
AWS_SCRIPT = Path("/usr/local/bin/start_cuda_compat.sh")


def with_compatibility(
    environment: Mapping[str, str], *, compat: Path = COMPAT, driver: Path = DRIVER
) -> dict[str, str]:
    """``environment``, with the image's user-mode driver first on the library path where the host's is older."""
    variables = dict(environment)
    brought, present = _brought(compat), _present(driver)
    if brought and present and present < brought:
        logger.info("driver %s is older than the image's %s: using %s", _text(present), _text(brought), compat)
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(compat), variables.get("LD_LIBRARY_PATH"))))
    return variables


def run_aws_step() -> None:
    """Do what the entrypoint of AWS's image does first, where this is built on it."""
    if AWS_SCRIPT.exists() and shutil.which("nvidia-smi") and shutil.which("nvcc"):
        subprocess.run(["bash", str(AWS_SCRIPT)], check=False)


def _brought(compat: Path) -> tuple[int, ...]:
    """Version of the image's driver: libcuda.so.1 is a link to libcuda.so.VERSION."""
    return _version(os.path.realpath(compat / "libcuda.so.1").rpartition("libcuda.so.")[2])


def _present(driver: Path) -> tuple[int, ...]:
    """Version of the host's driver, which the kernel module says in a line with NVRM."""
    try:
        line = next(each for each in driver.read_text().splitlines() if each.startswith("NVRM"))
    except (OSError, StopIteration):
        return ()
    found = re.search(r"\s(\d+\.\d[\d.]*)\s", line + " ")
    return _version(found[1]) if found else ()


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(map(int, parts)) if len(parts) > 1 and all(map(str.isdigit, parts)) else ()


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
