"""The endpoint's one production variant: which instances, how many at first, and how calls find one of them."""

from __future__ import annotations

from aws_cdk import aws_sagemaker as sagemaker

from infra.config import InfraConfig

VARIANT_NAME = "AllTraffic"
"""Stable, because autoscaling and metrics are bound to it."""
EndpointConfig = sagemaker.CfnEndpointConfig


def production_variant(config: InfraConfig, model_name: str) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """The variant of ``config`` that serves this model."""
    pools = [
        EndpointConfig.InstancePoolProperty(instance_type=each, priority=priority)
        for priority, each in enumerate(config.instance_types, start=1)
    ]
    return EndpointConfig.ProductionVariantProperty(
        variant_name=VARIANT_NAME,
        model_name=model_name,
        # Either a type or pools of types.
        instance_type=None if config.fallback_instance_types else config.instance_type,
        instance_pools=pools if config.fallback_instance_types else None,
        initial_instance_count=config.min_instances,
        initial_variant_weight=1,
        inference_ami_version=config.ami_version,
        volume_size_in_gb=config.volume_size_in_gb,
        container_startup_health_check_timeout_in_seconds=config.container_startup_health_check_timeout_in_seconds,
        model_data_download_timeout_in_seconds=config.model_data_download_timeout_in_seconds,
        routing_config=_routing(config),
    )


def data_capture(config: InfraConfig) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty | None:
    """Copies of requests and answers in S3, where they are asked for."""
    if not config.data_capture_s3_uri:
        return None
    return EndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        capture_options=[EndpointConfig.CaptureOptionProperty(capture_mode=each) for each in ("Input", "Output")],
        destination_s3_uri=config.data_capture_s3_uri,
        initial_sampling_percentage=config.data_capture_percent,
        kms_key_id=config.kms_key_arn,
    )


def _routing(config: InfraConfig) -> sagemaker.CfnEndpointConfig.RoutingConfigProperty:
    prefix = EndpointConfig.PrefixAwareRoutingConfigProperty(
        prefix_length=config.prefix_length, concurrency_threshold=config.prefix_concurrency_threshold
    )
    return EndpointConfig.RoutingConfigProperty(
        routing_strategy=config.routing_strategy,
        prefix_aware_routing_config=prefix if config.routing_strategy == "PREFIX_AWARE" else None,
    )
