"""What each field may be, alone: as data, and as AWS states it where AWS has the field.

Sources: the API models of SageMaker, CloudFormation and IAM (in botocore), the naming rules of S3 and ECR, and
``huggingface_hub`` for a model's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sagemaker_sticky_protocol import nearest

from infra import cuda
from infra.secrets import shown

BOUNDS: dict[str, tuple[float, float]] = {
    "model_size_gib": (0.001, 10_000),
    "volume_size_in_gb": (1, 512),
    "container_startup_health_check_timeout_in_seconds": (60, 3600),
    "model_data_download_timeout_in_seconds": (60, 3600),
    "prefix_length": (1024, 65536),
    "prefix_concurrency_threshold": (1, 1024),
    "min_instances": (1, 10_000),
    "max_instances": (1, 10_000),
    "target_concurrent_requests_per_instance": (1, 10_000),
    "scale_out_cooldown_seconds": (0, 3600),
    "scale_in_cooldown_seconds": (0, 3600),
    "deployment_wait_seconds": (0, 3600),
    "deployment_termination_wait_seconds": (0, 3600),
    "alarm_first_token_seconds": (0.001, 3600),
    "data_capture_percent": (1, 100),
}
"""Lowest and highest value allowed, by field."""
ALLOWED: dict[str, tuple[str | int, ...]] = {
    "routing_strategy": ("LEAST_OUTSTANDING_REQUESTS", "RANDOM", "PREFIX_AWARE"),
    "inference_ami_version": tuple(cuda.AMI_VERSIONS),
    "deployment_strategy": ("ALL_AT_ONCE", "CANARY", "LINEAR", "ROLLING"),
    "log_retention_days": (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 3653),
}
"""Values allowed, by field."""
_ARN = r"arn:aws[a-z-]*:{}:[a-z]{{2}}(-[a-z]+)+-\d:\d{{12}}:{}"
_KMS_KEY = _ARN.format("kms", r"key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_BUCKET = r"s3://(?!\d+(\.\d+){3}/)(?![^/]*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_PREFIX = r"/([\w!.'()=+@/-]+/)?"
_HUB_NAME = r"(?=.{1,96}$)(?!.*(\.\.|--))\w[\w.-]*(?<![.-])(/\w[\w.-]*(?<![.-]))?"
_ECR_NAME = r"(?=.{2,256}[:@])[a-z0-9]+([._/-][a-z0-9]+)*"
PATTERNS = {
    "account": (r"\d{12}", "the 12 digits of an AWS account"),
    "region": (r"[a-z]{2}(-[a-z]+)+-\d", "an AWS region such as eu-central-1"),
    "endpoint_name": (r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", "1 to 63 letters, digits and inner hyphens"),
    "model": (
        rf"{_HUB_NAME}|(?=.{{1,1024}}$){_BUCKET}{_PREFIX}",
        "a model of the Hugging Face hub such as Qwen/Qwen2.5-7B-Instruct, or s3://bucket/prefix/ with a / at the end",
    ),
    "base_image": (
        r"(?=.{1,255}$)[a-z0-9][\w./-]*(:\d+/[\w./-]+)?(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?",
        "an image such as lmsysorg/sglang:v0.5.23-cu130",
    ),
    "image_uri": (
        r"(?=.{1,255}$)\d{12}\.dkr\.ecr\.[a-z]{2}(-[a-z]+)+-\d\.amazonaws\.com(\.cn)?/"
        rf"{_ECR_NAME}(:\w[\w.-]{{0,127}}|@sha256:[0-9a-f]{{64}})",
        "an image in ECR such as 111122223333.dkr.ecr.eu-central-1.amazonaws.com/sticky:1.0-cu130",
    ),
    "cuda_version": (r"\d{2}(\.\d)?", "a CUDA version such as 12.9"),
    "data_capture_s3_uri": (rf"(?=.{{1,512}}$){_BUCKET}{_PREFIX}", "s3://bucket/prefix/ of at most 512 letters"),
    "alarm_topic_arn": (_ARN.format("sns", r"[\w-]{1,256}"), "the ARN of an SNS topic, not of a FIFO one"),
    "kms_key_arn": (_KMS_KEY, "the ARN of a KMS key"),
    "volume_kms_key_arn": (_KMS_KEY, "the ARN of a KMS key"),
}
"""Regular expression and its meaning, by field."""
LISTS: dict[str, tuple[int, str, str]] = {
    "fallback_instance_types": (4, r"[\w.-]+", "types such as ml.g5.2xlarge"),
    "subnet_ids": (16, r"subnet-([0-9a-f]{8}|[0-9a-f]{17})", "ids such as subnet-0a1b2c3d"),
    "security_group_ids": (5, r"sg-([0-9a-f]{8}|[0-9a-f]{17})", "ids such as sg-0a1b2c3d"),
}
"""Most items, regular expression of one, and its meaning, by field."""
MOST_TAGS = 50
_TAG = r"[\w .:/=+@-]"


def each_field(values: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with one field alone; ``values`` are those of all fields, by name."""
    for name, (lowest, highest) in BOUNDS.items():
        value = values[name]
        if value is not None and not lowest <= value <= highest:
            why = ": scaling to zero needs inference components" if (name, value) == ("min_instances", 0) else ""
            yield f"'{name}' should be from {lowest:g} to {highest:g}, got {value:g}{why}"
    for name, allowed in ALLOWED.items():
        value = values[name]
        if value is not None and value not in allowed:
            listed = ", ".join(map(str, allowed))
            yield f"'{name}' should be one of {listed}, got {shown(value)}{nearest(value, allowed)}"
    for name, (pattern, meaning) in PATTERNS.items():
        value = values[name]
        if value is not None and not re.fullmatch(pattern, value, re.ASCII):
            yield f"'{name}' should be {meaning}, got {shown(value)}"
    for name, (most, pattern, meaning) in LISTS.items():
        yield from _list(name, values[name], most, pattern, meaning)
    yield from _tags(values["tags"])


def _list(name: str, items: tuple[str, ...], most: int, pattern: str, meaning: str) -> Iterator[str]:
    if len(items) > most:
        yield f"'{name}' should be at most {most}, got {len(items)}"
    for item in dict.fromkeys(items):
        if not re.fullmatch(pattern, item, re.ASCII):
            yield f"'{name}' should be {meaning}, got {shown(item)}"
        if items.count(item) > 1:
            yield f"'{name}' should name each once, got {shown(item)} more than once"


def _tags(tags: Mapping[str, str]) -> Iterator[str]:
    """Tags that CloudFormation takes, for the stack and for each resource."""
    if len(tags) > MOST_TAGS:
        yield f"'tags' should be at most {MOST_TAGS}, got {len(tags)}"
    seen, letters = set(), "letters, digits and .:/=+-@_"
    for key, value in tags.items():
        if not re.fullmatch(rf"{_TAG}{{1,128}}", key) or key.lower().startswith("aws:"):
            yield f"'tags' should have keys of 1 to 128 {letters}, not from aws: on, got {shown(key)}"
        if not re.fullmatch(rf"{_TAG}{{1,256}}", value):
            yield f"'tags' should have values of 1 to 256 {letters}, got {shown(value)} for {shown(key)}"
        if key.lower() in seen:
            yield f"'tags' should name a key once, as IAM does not tell upper from lower case, got {shown(key)} again"
        seen.add(key.lower())
