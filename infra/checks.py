"""What is refused at synth, before anything is built or sent.

Each rule says what is wrong, what was given and what is allowed. The rules of one field alone are in ``infra.bounds``;
the functions below hold what several fields must agree on. They take values by the names of their fields and know no
more of a deployment: ``infra.config`` calls them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from sagemaker_sticky_protocol import nearest

from infra import cuda
from infra.bounds import PATTERNS
from infra.engine_arguments import Parallelism, parallelism
from infra.instance_types import INSTANCE_TYPES

STEP_PERCENT = {"CANARY": (1, 50), "LINEAR": (10, 50), "ROLLING": (5, 50)}
"""Lowest and highest share of a step, by deployment strategy, as in SageMaker's API model."""
SHORTEST_WATCH_SECONDS = 240
"""An alarm takes three bad minutes of five, and a minute comes up to a minute late."""
LONGEST_DEPLOYMENT_SECONDS = 28_800
"""What SageMaker's ``MaximumExecutionTimeoutInSeconds`` may be, which is to be more than all waits together."""
CUDA_VERSION, _ = PATTERNS["cuda_version"]
MEMORY_SHARE = 0.88
"""Share of a GPU's memory for weights and KV cache, where ``mem_fraction_static`` does not say it."""
MAX_VARIABLES = 100
MAX_VARIABLE_BYTES = 1024
MAX_ENVIRONMENT_BYTES = 32 * 1024
"""Limits of SageMaker on the container's environment: how many, on one key or value, and on the whole."""


def instances(*, min_instances: int, max_instances: int, routing_strategy: str) -> Iterator[str]:
    """How many there may be."""
    low, high = min_instances, max_instances
    if high < low:
        yield f"'max_instances' should be at least 'min_instances' ({low}), got {high}"
    if routing_strategy == "PREFIX_AWARE" and low < 2:
        yield f"'min_instances' should be at least 2 with 'routing_strategy' PREFIX_AWARE, got {low}"


def gpus(
    *, instance_types: Sequence[str], model_size_gib: float | None, engine_arguments: Mapping[str, str]
) -> Iterator[str]:
    """Whether every type, of which the first is ``instance_type``, has the GPUs and the memory that are asked for."""
    first, *fallback = instance_types
    if first in fallback:
        yield f"'fallback_instance_types' should be other types than 'instance_type', got {first!r}"
    try:
        asked = parallelism(engine_arguments)
    except ValueError as problem:
        yield str(problem)
        asked = Parallelism()
    counts = {name: INSTANCE_TYPES[name].gpus for name in instance_types if name in INSTANCE_TYPES}
    if len(set(counts.values())) > 1:
        # No threshold of an alarm would hold for all: SageMaker adds GPUMemoryUtilization up over an instance's GPUs.
        got = ", ".join(f"{name} with {count}" for name, count in counts.items())
        yield f"'fallback_instance_types' should have as many GPUs as 'instance_type', got {got}"
    for name in instance_types:
        kind = INSTANCE_TYPES.get(name)
        field = "instance_type" if name == first else "fallback_instance_types"
        if kind is None:
            meaning = "a GPU type that SGLang runs on, such as ml.g5.2xlarge"
            yield f"'{field}' should be {meaning}, got {name!r}{nearest(name, INSTANCE_TYPES)}"
            continue
        if asked.gpus > kind.gpus:
            got = f"{asked} = {asked.gpus}"
            yield f"'engine_arguments' should use at most the {kind.gpus} GPUs of {name}, got {got}"
        if model_size_gib is not None:
            share = asked.gpus_a_copy if asked.chosen else kind.gpus
            yield from _memory(name, share, model_size_gib, engine_arguments)


def _memory(name: str, share: int, model_size_gib: float, engine_arguments: Mapping[str, str]) -> Iterator[str]:
    """Whether the weights fit ``share`` GPUs of this type."""
    kind = INSTANCE_TYPES[name]
    text = engine_arguments.get("mem_fraction_static", str(MEMORY_SHARE))
    fraction = float(text) if re.fullmatch(r"0?\.\d+|1(\.0*)?", text) else MEMORY_SHARE
    room = kind.gpu_memory_mib / 1024 * fraction * share
    if model_size_gib >= room:
        where = f"{share} x {kind.gpu} of {name}, which leave {room:.1f} GiB"
        advice = "raise 'tp_size' or take a larger type"
        yield f"'model_size_gib' should fit {where}, got {model_size_gib:g}: {advice}"


def image(
    *,
    image_uri: str | None,
    base_image: str | None,
    cuda_of_image: str | None,
    inference_ami_version: str | None,
) -> Iterator[str]:
    """Whether the host image fits the CUDA of the container's."""
    if image_uri and base_image:
        yield f"'base_image' should be null with 'image_uri', which is built already, got {base_image!r}"
    known, given = cuda_of_image, inference_ami_version
    if given not in (None, *cuda.AMI_VERSIONS) or (known and not re.fullmatch(CUDA_VERSION, known, re.ASCII)):
        return  # that is said where each field is looked at alone
    wanted = cuda.ami_version_for(known) if known else None
    if known is None and given is None:
        got = image_uri or base_image
        yield f"'cuda_version' should be given, such as 13.0, because the tag of {got!r} does not say it"
    elif known is not None and given is None and wanted is None:
        yield f"'cuda_version' should be one that a host image of SageMaker fits (11.0 to 13.x), got {known!r}"
    elif known is not None and given is not None and not cuda.fits(given, known):
        yield f"'inference_ami_version' should be {wanted} for CUDA {known}, got {given!r}"


def volume(
    *, instance_types: Sequence[str], volume_size_in_gb: int | None, volume_kms_key_arn: str | None
) -> Iterator[str]:
    """Whether there can be a volume."""
    nvme = [name for name in instance_types if name in INSTANCE_TYPES and INSTANCE_TYPES[name].local_nvme]
    given = {"volume_size_in_gb": volume_size_in_gb, "volume_kms_key_arn": volume_kms_key_arn}
    for field, value in given.items():
        if value is not None and nvme:
            yield f"'{field}' should be null with {nvme[0]}, whose disk is its own NVMe, got {value!r}"


def deployment(
    *,
    deployment_strategy: str,
    deployment_step_percent: int,
    deployment_wait_seconds: int,
    deployment_termination_wait_seconds: int,
) -> Iterator[str]:
    """How an update may reach the instances."""
    lowest, highest = STEP_PERCENT.get(deployment_strategy, (1, 100))
    if not lowest <= deployment_step_percent <= highest:
        got = f"{deployment_step_percent}, with {deployment_strategy}"
        yield f"'deployment_step_percent' should be from {lowest} to {highest}, got {got}"
        return
    if deployment_wait_seconds < SHORTEST_WATCH_SECONDS:
        least = f"at least {SHORTEST_WATCH_SECONDS}, before which no alarm can roll the update back"
        yield f"'deployment_wait_seconds' should be {least}, got {deployment_wait_seconds}"
    steps = {"ALL_AT_ONCE": 1, "CANARY": 2}.get(deployment_strategy, math.ceil(100 / deployment_step_percent))
    total = steps * deployment_wait_seconds
    total += 0 if deployment_strategy == "ROLLING" else deployment_termination_wait_seconds
    if total >= LONGEST_DEPLOYMENT_SECONDS:
        most = f"make less than {LONGEST_DEPLOYMENT_SECONDS} over all steps"
        yield f"'deployment_wait_seconds' should {most}, got {steps} x {deployment_wait_seconds}, {total} in all"


def places(*, region: str | None, arns: Mapping[str, str | None], image_uri: str | None) -> Iterator[str]:
    """Whether all that is named is in the region of the stack; where none is given, whether it is in one region."""
    found = {
        field: (arn.split(":")[3], arn.split(":")[1]) for field, arn in arns.items() if arn and arn.count(":") >= 5
    }
    if image_uri and image_uri.count(".") >= 3:
        found["image_uri"] = (image_uri.split(".")[3], "")
    expected = region or next((where for where, _ in found.values()), None)
    for field, (where, partition) in found.items():
        if where != expected:
            whose = "the stack's" if region else "that of the others"
            yield f"'{field}' should be in one region with the stack, {expected} is {whose}, got {where}"
        if partition not in ("", partition_of(where)):
            yield f"'{field}' should be in the partition {partition_of(where)}, as {where} is, got {partition}"


def partition_of(region: str) -> str:
    """AWS's partition that a region is in."""
    prefixes = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b"}
    return next((name for prefix, name in prefixes.items() if region.startswith(prefix)), "aws")


def isolation(*, model: str, hf_token_secret_arn: str) -> Iterator[str]:
    """What a container without a network cannot have."""
    if not model.startswith("s3://"):
        why = "as the hub cannot be reached"
        yield f"'model' should be in S3 with 'enable_network_isolation', {why}, got {model!r}"
    if hf_token_secret_arn:
        yield "'hf_token_secret_arn' should be empty with 'enable_network_isolation', as neither can be reached"


def network(*, subnet_ids: Sequence[str], security_group_ids: Sequence[str]) -> Iterator[str]:
    """A place in a VPC."""
    if bool(subnet_ids) != bool(security_group_ids):
        yield "'subnet_ids' and 'security_group_ids' should be given together"


def environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Whether SageMaker takes these variables."""
    for name, value in environment.items():
        size = max(len(name.encode()), len(value.encode()))
        if size > MAX_VARIABLE_BYTES:
            yield f"environment variable '{name}' should be at most {MAX_VARIABLE_BYTES} bytes, got {size}"
    if len(environment) > MAX_VARIABLES:
        yield f"'engine_arguments' and other settings should be at most {MAX_VARIABLES}, got {len(environment)}"
    total = sum(len(name.encode()) + len(value.encode()) for name, value in environment.items())
    if total > MAX_ENVIRONMENT_BYTES:
        yield f"the container's environment should be at most {MAX_ENVIRONMENT_BYTES} bytes in all, got {total}"
