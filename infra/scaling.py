"""Autoscaling of the endpoint's instances, on requests that are in a container at the same time."""

from __future__ import annotations

from aws_cdk import Duration, Stack, TimeZone
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.config import InfraConfig
from infra.endpoint import StickyEndpoint
from infra.variant import VARIANT_NAME


class ConcurrencyScaling(Construct):
    """Target tracking between ``min_instances`` and ``max_instances``, and other bounds on schedule.

    A turn that streams for a minute is one invocation but a minute of work: so the metric is concurrent requests, which
    count a stream until its last token, at a resolution of 10 seconds, and not invocations.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig, endpoint: StickyEndpoint) -> None:
        super().__init__(scope, id)
        target = autoscaling.ScalableTarget(
            self,
            "Target",
            service_namespace=autoscaling.ServiceNamespace.SAGEMAKER,
            scalable_dimension="sagemaker:variant:DesiredInstanceCount",
            resource_id=f"endpoint/{endpoint.endpoint_name}/variant/{VARIANT_NAME}",
            min_capacity=config.min_instances,
            max_capacity=config.max_instances,
            role=_service_linked_role(self),
        )
        # Made after the endpoint and, what matters more, gone before it.
        target.node.add_dependency(endpoint.endpoint)
        target.scale_to_track_metric(
            "Concurrency",
            predefined_metric=(
                autoscaling.PredefinedMetric.SAGEMAKER_VARIANT_CONCURRENT_REQUESTS_PER_MODEL_HIGH_RESOLUTION
            ),
            target_value=config.target_concurrent_requests_per_instance,
            scale_out_cooldown=Duration.seconds(config.scale_out_cooldown_seconds),
            scale_in_cooldown=Duration.seconds(config.scale_in_pause_seconds),
        )
        for number, schedule in enumerate(config.schedules, start=1):
            target.scale_on_schedule(
                f"Schedule{number}",
                schedule=autoscaling.Schedule.expression(f"cron({schedule.cron})"),
                min_capacity=schedule.min_instances,
                max_capacity=schedule.max_instances,
                time_zone=TimeZone.of(schedule.timezone),
            )


def _service_linked_role(scope: Construct) -> iam.IRole:
    # The role that Application Auto Scaling makes and uses anyway; without it the CDK would add one that does nothing.
    arn = Stack.of(scope).format_arn(
        service="iam",
        region="",
        resource="role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com",
        resource_name="AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint",
    )
    return iam.Role.from_role_arn(scope, "ServiceLinkedRole", arn)
