"""The CloudFormation resource types of the stack that moto does not make."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from moto.applicationautoscaling.models import applicationautoscaling_backends
from moto.cloudformation.exceptions import UnformattedGetAttTemplateException
from moto.cloudwatch.models import Dimension, Metric, MetricDataQuery, MetricStat, cloudwatch_backends
from moto.core.common_models import CloudFormationModel


class _Resource:
    """What CloudFormation asks of a resource. A mix-in, as moto looks at direct subclasses of its own base only."""

    type_name: str
    name_property = ""

    def __init__(self, physical_id: str, *, name: str = "", **attributes: str) -> None:
        self.name = name
        self._physical_id = physical_id
        self._attributes = attributes

    @property
    def physical_resource_id(self) -> str:
        return self._physical_id

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return True

    def get_cfn_attribute(self, attribute_name: str) -> str:
        if attribute_name not in self._attributes:
            raise UnformattedGetAttTemplateException()
        return self._attributes[attribute_name]

    def is_created(self) -> bool:
        return True

    @classmethod
    def cloudformation_type(cls) -> str:
        return cls.type_name

    @classmethod
    def cloudformation_name_type(cls) -> str:
        return cls.name_property

    @classmethod
    def update_from_cloudformation_json(
        cls, original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> Any:
        with suppress(Exception):  # it may be gone with what it belonged to
            original_resource.delete(account_id, region_name)
        name = original_resource.name or new_resource_name
        return cls.create_from_cloudformation_json(name, cloudformation_json, account_id, region_name)


class ScalableTarget(_Resource, CloudFormationModel):
    __module__ = "moto.cloudformation.rehearsal"  # moto wants its own
    type_name = "AWS::ApplicationAutoScaling::ScalableTarget"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        given = cloudformation_json["Properties"]
        key = given["ServiceNamespace"], given["ResourceId"], given["ScalableDimension"]
        applicationautoscaling_backends[account_id][region_name].register_scalable_target(
            *key,
            int(given["MinCapacity"]),
            int(given["MaxCapacity"]),
            given.get("RoleARN"),
            given.get("SuspendedState"),
        )
        namespace, resource, dimension = key
        target = cls("|".join((resource, dimension, namespace)))
        target.key = key
        return target

    def delete(self, account_id, region_name):
        applicationautoscaling_backends[account_id][region_name].deregister_scalable_target(*self.key)


class ScalingPolicy(_Resource, CloudFormationModel):
    __module__ = "moto.cloudformation.rehearsal"
    type_name = "AWS::ApplicationAutoScaling::ScalingPolicy"
    name_property = "PolicyName"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        given = cloudformation_json["Properties"]
        resource, dimension, namespace = given["ScalingTargetId"].split("|")
        key = resource_name, namespace, resource, dimension
        policy = applicationautoscaling_backends[account_id][region_name].put_scaling_policy(
            *key, given["TargetTrackingScalingPolicyConfiguration"], given["PolicyType"]
        )
        made = cls(policy.policy_arn, name=resource_name, Arn=policy.policy_arn)
        made.key = key
        return made

    def delete(self, account_id, region_name):
        applicationautoscaling_backends[account_id][region_name].delete_scaling_policy(*self.key)


class Alarm(_Resource, CloudFormationModel):
    __module__ = "moto.cloudformation.rehearsal"
    type_name = "AWS::CloudWatch::Alarm"
    name_property = "AlarmName"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        given = cloudformation_json["Properties"]
        cloudwatch_backends[account_id][region_name].put_metric_alarm(
            name=resource_name,
            namespace=given.get("Namespace"),
            metric_name=given.get("MetricName"),
            metric_data_queries=[_query(each) for each in given.get("Metrics", [])] or None,
            comparison_operator=given["ComparisonOperator"],
            evaluation_periods=int(given["EvaluationPeriods"]),
            datapoints_to_alarm=given.get("DatapointsToAlarm"),
            period=given.get("Period"),
            threshold=given.get("Threshold"),
            statistic=given.get("Statistic"),
            extended_statistic=given.get("ExtendedStatistic"),
            description=given.get("AlarmDescription"),
            dimensions=given.get("Dimensions", []),
            alarm_actions=given.get("AlarmActions", []),
            ok_actions=given.get("OKActions", []),
            insufficient_data_actions=given.get("InsufficientDataActions", []),
            unit=given.get("Unit"),
            treat_missing_data=given.get("TreatMissingData"),
        )
        arn = f"arn:aws:cloudwatch:{region_name}:{account_id}:alarm:{resource_name}"
        return cls(resource_name, name=resource_name, Arn=arn)

    def delete(self, account_id, region_name):
        cloudwatch_backends[account_id][region_name].delete_alarms([self.name])


class BucketPolicy(_Resource, CloudFormationModel):
    """Recorded only: moto's S3 does not read conditions, so that the CDK's "deny without TLS" would deny everybody."""

    __module__ = "moto.cloudformation.rehearsal"
    type_name = "AWS::S3::BucketPolicy"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        return cls(cloudformation_json["Properties"]["Bucket"])

    def delete(self, account_id, region_name):
        pass


def _query(given: dict[str, Any]) -> MetricDataQuery:
    stat = given.get("MetricStat")
    return MetricDataQuery(
        query_id=given["Id"],
        label=given.get("Label"),
        period=given.get("Period"),
        return_data=given.get("ReturnData"),
        expression=given.get("Expression"),
        metric_stat=stat and _stat(stat),
    )


def _stat(given: dict[str, Any]) -> MetricStat:
    metric = given["Metric"]
    dimensions = [Dimension(name=each["Name"], value=each["Value"]) for each in metric.get("Dimensions", [])]
    return MetricStat(
        metric=Metric(metric_name=metric["MetricName"], namespace=metric["Namespace"], dimensions=dimensions),
        period=given["Period"],
        stat=given["Stat"],
        unit=given.get("Unit"),
    )
