import pytest
from aws_cdk.assertions import Match

from infra.checks import SHORTEST_WATCH_SECONDS

SIZE = {"Type": "CAPACITY_PERCENT", "Value": 20}
ALARMS = {"AutoRollbackConfiguration": {"Alarms": Match.any_value()}}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            "ALL_AT_ONCE",
            {
                "TrafficRoutingConfiguration": {
                    "Type": "ALL_AT_ONCE",
                    "WaitIntervalInSeconds": 240,
                    "CanarySize": Match.absent(),
                    "LinearStepSize": Match.absent(),
                },
                "TerminationWaitInSeconds": 300,
            },
        ),
        (
            "CANARY",
            {"TrafficRoutingConfiguration": {"Type": "CANARY", "WaitIntervalInSeconds": 240, "CanarySize": SIZE}},
        ),
        (
            "LINEAR",
            {"TrafficRoutingConfiguration": {"Type": "LINEAR", "WaitIntervalInSeconds": 240, "LinearStepSize": SIZE}},
        ),
    ],
)
def test_a_second_fleet_takes_over(endpoint_template, strategy, expected):
    template = endpoint_template(deployment_strategy=strategy, deployment_step_percent=20, deployment_wait_seconds=240)
    template.has_resource_properties(
        "AWS::SageMaker::Endpoint",
        {"DeploymentConfig": {"BlueGreenUpdatePolicy": expected, "RollingUpdatePolicy": Match.absent(), **ALARMS}},
    )


def test_a_fleet_may_be_replaced_in_parts(endpoint_template):
    template = endpoint_template(deployment_strategy="ROLLING", deployment_step_percent=20)
    template.has_resource_properties(
        "AWS::SageMaker::Endpoint",
        {
            "DeploymentConfig": {
                "BlueGreenUpdatePolicy": Match.absent(),
                "RollingUpdatePolicy": {"MaximumBatchSize": SIZE, "WaitIntervalInSeconds": 300},
                **ALARMS,
            }
        },
    )


def test_the_stacks_own_alarms_roll_back(template):
    (endpoint,) = template.find_resources("AWS::SageMaker::Endpoint").values()
    alarms = endpoint["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    made = template.find_resources("AWS::CloudWatch::Alarm")
    named = {each["AlarmName"]["Ref"] for each in alarms}
    assert named <= set(made)
    assert len(named) == 4
    # An alarm that is on while the endpoint starts would end every first deployment.
    assert not any("NoHealthyInstance" in name for name in named)


def test_an_update_waits_longer_than_an_alarm_takes(template):
    (endpoint,) = template.find_resources("AWS::SageMaker::Endpoint").values()
    guardrails = endpoint["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    for each in guardrails:
        alarm = template.find_resources("AWS::CloudWatch::Alarm")[each["AlarmName"]["Ref"]]["Properties"]
        periods = [
            alarm.get("Period"),
            *(m["MetricStat"]["Period"] for m in alarm.get("Metrics", []) if "MetricStat" in m),
        ]
        longest = max(each for each in periods if each)
        assert (alarm["DatapointsToAlarm"] + 1) * longest <= SHORTEST_WATCH_SECONDS
