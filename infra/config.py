"""What a deployment is: one frozen value, read once from CDK context (``infra.context``) and passed down.

A context key is a field of :class:`InfraConfig` or one of the container's own settings: so no second place has to know
what ``cdk deploy -c max_sessions=200`` means. ``infra.checks`` refuses what cannot work before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from container.config import ContainerConfig
from infra import bounds, checks, cuda, engine_arguments, schedule, secrets
from infra.schedule import Schedule

MODEL_DIRECTORY = "/opt/ml/model"
"""Where SageMaker mounts model data in the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraConfig:
    """One deployment, in SageMaker's words.

    Raises:
        ValueError: every problem found, in one message.
    """

    account: str | None = None
    """AWS account. Default: the one of the credentials that deploy."""
    region: str | None = None
    """AWS region. Default: as above."""
    endpoint_name: str | None = None
    """Default: the name of the stack, in lower case. An update does not replace an endpoint, so that its name can be
    fixed: alarms, log group and role are bound to it before the endpoint is there."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """On every resource that takes tags. Default: none."""

    model: str = "Qwen/Qwen2.5-7B-Instruct"
    """What to serve: a hub name, which each instance downloads as it starts, or an uncompressed S3 prefix, which
    SageMaker mounts. Default: a model that fits the default instance type and needs no token."""
    model_size_gib: float | None = None
    """Size of the weights in GiB. Default: not known, and whether they fit the GPUs is not checked."""
    base_image: str | None = None
    """SGLang image that the container is built on. Default: the one that ``container/Dockerfile`` names."""
    image_uri: str | None = None
    """A ready image in ECR instead. Default: the container is built and pushed as a CDK asset."""
    cuda_version: str | None = None
    """CUDA of the image, such as 12.9. Default: what the image's tag says (``cu129``)."""
    inference_ami_version: str | None = None
    """Host image. Default: the one whose driver fits the image's CUDA."""

    instance_type: str = "ml.g5.2xlarge"
    """Default: one A10G with 24 GB."""
    fallback_instance_types: tuple[str, ...] = ()
    """Types to take, in this order, where ``instance_type`` has no capacity: SageMaker's instance pools. They have as
    many GPUs, so that the alarm of GPU memory holds for each of them."""
    volume_size_in_gb: int | None = None
    """Size of an EBS volume. Default: the instance's own disk, which all types with NVMe prescribe."""
    volume_kms_key_arn: str | None = None
    """Key of that volume. Default: as above; an NVMe disk is encrypted by its hardware."""
    container_startup_health_check_timeout_in_seconds: int = 1800
    """From the start of the container to the first healthy ``/ping``. Default: time to download and load 15 GB."""
    model_data_download_timeout_in_seconds: int = 1800
    """To copy model data from S3 to the instance. Default: as above."""

    routing_strategy: str = "LEAST_OUTSTANDING_REQUESTS"
    """Where a call without a session goes. Default: the least busy instance."""
    prefix_length: int = 4096
    """With PREFIX_AWARE: bytes of the body that decide. Default: a system prompt of about a thousand tokens."""
    prefix_concurrency_threshold: int = 16
    """With PREFIX_AWARE: requests on one instance from which another one is taken."""

    min_instances: int = 1
    """Instances at first, and the fewest that autoscaling leaves."""
    max_instances: int = 4
    """Most instances that autoscaling starts. Equal to ``min_instances``: a fixed fleet, nothing scales."""
    target_concurrent_requests_per_instance: float = 8.0
    """Requests in one container that autoscaling aims at, streams counted until their last token. Default: a careful
    start for a 7B model on an A10G; set 70 to 80 % of what a load test of your own shows."""
    scale_out_cooldown_seconds: int = 60
    """Pause after an instance was added."""
    scale_in_cooldown_seconds: int | None = None
    """Pause after an instance was taken, with which its sessions end. Default: the life of a session, from 5 to 60
    minutes, so that sessions which moved once are not moved again."""
    schedules: tuple[Schedule, ...] = ()
    """Other bounds at set times. Default: none."""

    deployment_strategy: str = "ALL_AT_ONCE"
    """How an update reaches the instances. ALL_AT_ONCE, CANARY and LINEAR start a second fleet beside the first,
    ROLLING replaces the fleet in parts. Default: one step."""
    deployment_step_percent: int = 25
    """Share of a step, of all but ALL_AT_ONCE."""
    deployment_wait_seconds: int = 300
    """How long the alarms are watched after each step; one that goes off rolls the update back. At least 240: an alarm
    takes three minutes of bad figures."""
    deployment_termination_wait_seconds: int = 300
    """How long the old fleet stays after the last step; with ROLLING there is none."""

    alarm_topic_arn: str | None = None
    """SNS topic that alarms tell. Default: they are seen in CloudWatch only."""
    alarm_first_token_seconds: float = 10.0
    """Time to the first token, of nine turns in ten, above which an alarm goes off."""
    log_retention_days: int = 30
    """How long CloudWatch keeps the endpoint's log; it goes with the stack."""
    data_capture_s3_uri: str | None = None
    """Prefix to which SageMaker copies requests and answers, that is, what people wrote. Default: nothing is copied."""
    data_capture_percent: int = 100
    """Share of the requests that is copied."""
    kms_key_arn: str | None = None
    """Key of captured data, and of model data that is encrypted with it. Default: S3's own encryption."""

    subnet_ids: tuple[str, ...] = ()
    """Subnets of an existing VPC for the instances. Default: SageMaker's own network. A VPC of this stack could not be
    deleted with it, as network interfaces outlive an endpoint."""
    security_group_ids: tuple[str, ...] = ()
    """Security groups in that VPC."""
    enable_network_isolation: bool = False
    """Whether the container has no network at all: then the model comes from S3."""

    container: ContainerConfig = field(default_factory=ContainerConfig)
    """Settings of the container; in context its fields stand beside those above. Default: the container's own."""

    def __post_init__(self) -> None:
        """Check every field."""
        problems = list(_problems(self))
        if problems:
            raise ValueError(secrets.hidden("; ".join(problems)))

    @property
    def autoscales(self) -> bool:
        """Whether the number of instances may change by itself."""
        return self.min_instances < self.max_instances

    @property
    def model_in_s3(self) -> bool:
        """Whether ``model`` is an S3 prefix."""
        return self.model.startswith("s3://")

    @property
    def instance_types(self) -> tuple[str, ...]:
        """All types that instances may have, in order of preference."""
        return (self.instance_type, *self.fallback_instance_types)

    @property
    def cuda(self) -> str | None:
        """CUDA of the image, or None where nothing says it."""
        if self.cuda_version:
            return self.cuda_version
        image = self.image_uri or self.base_image
        return cuda.cuda_of_tag(image) if image else cuda.DEFAULT_IMAGE_CUDA

    @property
    def ami_version(self) -> str | None:
        """The host image: the one that is set, else the one for the image's CUDA."""
        return self.inference_ami_version or (cuda.ami_version_for(self.cuda) if self.cuda else None)

    @property
    def scale_in_pause_seconds(self) -> int:
        """The scale-in cooldown: the one that is set, else the life of a session within its bounds."""
        if self.scale_in_cooldown_seconds is not None:
            return self.scale_in_cooldown_seconds
        return min(3600, max(300, round(self.container.session_ttl_minutes * 60)))

    def environment(self, *, metrics_namespace: str = "") -> dict[str, str]:
        """The environment variables of the container, whose metrics go to the given namespace, or nowhere."""
        model_path = MODEL_DIRECTORY if self.model_in_s3 else self.model
        arguments = {**engine_arguments.allowed(self.container.engine_arguments), "model_path": model_path}
        settings = replace(self.container, engine_arguments=arguments, metrics_namespace=metrics_namespace)
        return settings.to_env()


def _problems(config: InfraConfig) -> Iterator[str]:
    """Everything that is wrong with ``config``."""
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    arguments, types = config.container.engine_arguments, config.instance_types
    yield from bounds.each_field(values)
    yield from engine_arguments.reserved(arguments)
    yield from checks.instances(
        min_instances=config.min_instances,
        max_instances=config.max_instances,
        routing_strategy=config.routing_strategy,
    )
    yield from schedule.agree(config.schedules, autoscales=config.autoscales, routing_strategy=config.routing_strategy)
    yield from checks.gpus(instance_types=types, model_size_gib=config.model_size_gib, engine_arguments=arguments)
    yield from checks.image(
        image_uri=config.image_uri,
        base_image=config.base_image,
        cuda_of_image=config.cuda,
        inference_ami_version=config.inference_ami_version,
    )
    yield from checks.volume(
        instance_types=types,
        volume_size_in_gb=config.volume_size_in_gb,
        volume_kms_key_arn=config.volume_kms_key_arn,
    )
    yield from checks.deployment(
        deployment_strategy=config.deployment_strategy,
        deployment_step_percent=config.deployment_step_percent,
        deployment_wait_seconds=config.deployment_wait_seconds,
        deployment_termination_wait_seconds=config.deployment_termination_wait_seconds,
    )
    arns = {name: values[name] for name in ("alarm_topic_arn", "kms_key_arn", "volume_kms_key_arn")}
    arns["hf_token_secret_arn"] = config.container.hf_token_secret_arn
    yield from checks.places(region=config.region, arns=arns, image_uri=config.image_uri)
    if config.enable_network_isolation:
        yield from checks.isolation(model=config.model, hf_token_secret_arn=config.container.hf_token_secret_arn)
    yield from checks.network(subnet_ids=config.subnet_ids, security_group_ids=config.security_group_ids)
    yield from secrets.problems(values, arguments)
    yield from checks.environment(config.environment())


OWN_KEYS = frozenset(each.name for each in fields(InfraConfig)) - {"container"}
"""Context keys that are fields here."""
NOT_KEYS = {"host", "port", "instance", "metrics_namespace", "session_journal_directory", "max_restarts"}
CONTAINER_KEYS = frozenset(each.name for each in fields(ContainerConfig)) - NOT_KEYS
"""Context keys that are the container's. The others are SageMaker's to set, the stack's, or the image's own affair."""
