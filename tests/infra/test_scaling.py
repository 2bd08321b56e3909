import pytest
from aws_cdk import Stack
from aws_cdk.assertions import Template

from infra.config import InfraConfig
from infra.schedule import Schedule
from infra.stack import StickyStack


def test_capacity_is_bounded(template):
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        {
            "MinCapacity": 1,
            "MaxCapacity": 4,
            "ServiceNamespace": "sagemaker",
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        },
    )


def test_the_target_is_the_endpoints_one_variant(template):
    (target,) = template.find_resources("AWS::ApplicationAutoScaling::ScalableTarget").values()
    assert target["Properties"]["ResourceId"] == "endpoint/stickysglang/variant/AllTraffic"


def test_scaling_comes_after_the_endpoint_and_goes_before_it(template):
    (endpoint,) = template.find_resources("AWS::SageMaker::Endpoint")
    for kind in ("ScalableTarget", "ScalingPolicy"):
        (resource,) = template.find_resources(f"AWS::ApplicationAutoScaling::{kind}").values()
        assert endpoint in resource["DependsOn"]


def test_the_policy_tracks_concurrent_requests(template):
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        {
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
                },
                "TargetValue": 8,
                "ScaleOutCooldown": 60,
                "ScaleInCooldown": 1800,
            },
        },
    )


def test_the_service_linked_role_is_used_and_no_other_made(template):
    (target,) = template.find_resources("AWS::ApplicationAutoScaling::ScalableTarget").values()
    assert "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint" in str(target["Properties"]["RoleARN"])
    template.resource_count_is("AWS::IAM::Role", 1)


@pytest.mark.parametrize("instances", [1, 3])
def test_a_fixed_fleet_has_nothing_that_scales(instances):
    config = InfraConfig(min_instances=instances, max_instances=instances)
    template = Template.from_stack(StickyStack(Stack(), "Sticky", config=config))
    template.resource_count_is("AWS::ApplicationAutoScaling::ScalableTarget", 0)
    template.resource_count_is("AWS::ApplicationAutoScaling::ScalingPolicy", 0)
    variant = {"ProductionVariants": [{"InitialInstanceCount": instances}]}
    template.has_resource_properties("AWS::SageMaker::EndpointConfig", variant)


def test_schedules_change_the_bounds():
    schedule = Schedule(cron="0 8 ? * MON-FRI *", min_instances=2, max_instances=6, timezone="Europe/Berlin")
    template = Template.from_stack(StickyStack(Stack(), "Sticky", config=InfraConfig(schedules=(schedule,))))
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        {
            "ScheduledActions": [
                {
                    "ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 6},
                    "Schedule": "cron(0 8 ? * MON-FRI *)",
                    "Timezone": "Europe/Berlin",
                    "ScheduledActionName": "Schedule1",
                }
            ]
        },
    )
