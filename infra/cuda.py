"""Which host image fits which CUDA: a mismatch leaves the endpoint in Creating, without a line of log.

Source: SageMaker's ``InferenceAmiVersion`` (NVIDIA driver of each) and NVIDIA's CUDA compatibility table.
"""

from __future__ import annotations

import re

AMI_VERSIONS = {
    "al2023-ami-sagemaker-inference-gpu-4-1": ((13, 0), (14, 0)),
    "al2-ami-sagemaker-inference-gpu-3-1": ((12, 3), (13, 0)),
    "al2-ami-sagemaker-inference-gpu-2-1": ((11, 0), (12, 3)),
    "al2-ami-sagemaker-inference-gpu-2": ((11, 0), (12, 3)),
}
"""CUDA that each host image is for: from the first version, below the second. Drivers: 580, 550, 535, 535."""
DEFAULT_IMAGE_CUDA = "13.0"
"""CUDA of the base image that ``container/Dockerfile`` names."""


def cuda_of_tag(image: str) -> str | None:
    """CUDA as an image's tag says it: ``…-cu130-…`` is 13.0; None where it does not."""
    found = re.search(r"cu(?:da)?[-.]?(\d{2})\.?(\d)(?!\d)", image.rpartition("/")[2].partition(":")[2])
    return f"{found[1]}.{found[2]}" if found else None


def fits(ami_version: str, cuda: str) -> bool:
    """Whether the host image's driver is the one for this CUDA."""
    lowest, above = AMI_VERSIONS[ami_version]
    return lowest <= _numbers(cuda) < above


def ami_version_for(cuda: str) -> str | None:
    """The newest host image for this CUDA, or None."""
    return next((name for name in AMI_VERSIONS if fits(name, cuda)), None)


def _numbers(cuda: str) -> tuple[int, int]:
    major, _, minor = cuda.partition(".")
    return int(major), int(minor or 0)
