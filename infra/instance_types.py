"""The GPU instance types that the image can run on, as data.

Source: EC2's DescribeInstanceTypes (GPU name, count and memory; local NVMe storage; x86-64), for the types that
SageMaker takes for an endpoint (``ProductionVariantInstanceType`` in its API model). A test compares the table with
both. Left out are ml.p2 and ml.p3, whose GPUs are older than SGLang's kernels (compute capability 7.5), and ml.p6e,
whose CPUs are ARM.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One type.

    Attributes:
        gpu: Name of the GPU.
        gpus: How many.
        gpu_memory_mib: Memory of each, in MiB.
        local_nvme: Whether it brings its own disk: then SageMaker takes neither a volume size nor a volume key.
    """

    gpu: str
    gpus: int
    gpu_memory_mib: int
    local_nvme: bool = True


ONE_GPU = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")

FAMILIES: dict[str, tuple[str, int, dict[str, int]]] = {
    "g4dn": ("T4", 16384, {**dict.fromkeys(ONE_GPU, 1), "12xlarge": 4}),
    "g5": ("A10G", 22888, {**dict.fromkeys(ONE_GPU, 1), "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}),
    "g6": ("L4", 22888, {**dict.fromkeys(ONE_GPU, 1), "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}),
    "g6e": ("L40S", 45776, {**dict.fromkeys(ONE_GPU, 1), "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}),
    "g7": ("RTX PRO 4500", 32768, {**dict.fromkeys(ONE_GPU[1:4], 1), "12xlarge": 2, "24xlarge": 4, "48xlarge": 8}),
    "g7e": (
        "RTX PRO Server 6000",
        98304,
        {**dict.fromkeys(ONE_GPU[1:4], 1), "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
    ),
    "p4d": ("A100", 40960, {"24xlarge": 8}),
    "p4de": ("A100", 81920, {"24xlarge": 8}),
    "p5": ("H100", 81920, {"4xlarge": 1, "48xlarge": 8}),
    "p5e": ("H200", 144384, {"48xlarge": 8}),
    "p5en": ("H200", 144384, {"48xlarge": 8}),
    "p6-b200": ("B200", 183359, {"48xlarge": 8}),
    "p6-b300": ("B300", 275040, {"48xlarge": 8}),
}
"""GPU, memory of one in MiB, and number of GPUs by size."""

INSTANCE_TYPES: dict[str, InstanceType] = {
    f"ml.{family}.{size}": InstanceType(gpu, gpus, memory)
    for family, (gpu, memory, sizes) in FAMILIES.items()
    for size, gpus in sizes.items()
}
"""Every type, by SageMaker's name."""
