import json

import pytest
from aws_cdk.assertions import Match, Template

from infra.instance_types import INSTANCE_TYPES
from infra.metrics import container_namespace


def alarm(template: Template, id: str) -> dict:
    (found,) = (each for name, each in template.find_resources("AWS::CloudWatch::Alarm").items() if id in name)
    return found["Properties"]


def test_there_is_an_alarm_for_each_thing_to_be_told(template):
    template.resource_count_is("AWS::CloudWatch::Alarm", 5)
    for id in ("ModelErrors", "Latency", "Disk", "GpuMemory", "NoHealthyInstance"):
        assert alarm(template, id)["AlarmDescription"]


def test_what_a_caller_did_wrong_is_no_model_error(template):
    expression, *metrics = alarm(template, "ModelErrors")["Metrics"]
    assert expression["Expression"] == "IF(calls > 0, 100 * (failed - refused) / calls, 0)"
    named = {each["Id"]: each["MetricStat"]["Metric"]["MetricName"] for each in metrics}
    assert named == {"calls": "Invocations", "failed": "InvocationModelErrors", "refused": "Invocation4XXErrors"}
    assert {each["MetricStat"]["Stat"] for each in metrics} == {"Sum"}


def test_latency_is_the_wait_for_the_first_token(template):
    found = alarm(template, "Latency")
    assert (found["Namespace"], found["MetricName"]) == ("StickySGLang/StickySglang", "TimeToFirstToken")
    assert (found["ExtendedStatistic"], found["Threshold"], found["TreatMissingData"]) == ("p90", 10, "notBreaching")


def test_gpu_memory_is_a_hundred_percent_for_each_gpu(template, endpoint_template):
    assert alarm(template, "GpuMemory")["Threshold"] == 98
    assert alarm(endpoint_template(instance_type="ml.g5.12xlarge"), "GpuMemory")["Threshold"] == 4 * 98


def test_the_alarm_of_gpu_memory_can_go_off_on_each_type_of_a_pool(endpoint_template):
    pool = ["ml.g5.12xlarge", "ml.g6.12xlarge", "ml.g5.24xlarge"]
    threshold = alarm(endpoint_template(instance_type=pool[0], fallback_instance_types=tuple(pool[1:])), "GpuMemory")[
        "Threshold"
    ]
    for each in pool:
        # Above what SGLang takes as it starts, below the most that the type can report.
        assert 95 * INSTANCE_TYPES[each].gpus < threshold < 100 * INSTANCE_TYPES[each].gpus


def test_silence_means_that_no_instance_is_healthy(template):
    found = alarm(template, "NoHealthyInstance")
    assert (found["MetricName"], found["Statistic"]) == ("CPUUtilization", "SampleCount")
    assert (found["ComparisonOperator"], found["Threshold"]) == ("LessThanThreshold", 1)
    assert found["TreatMissingData"] == "breaching"


def test_a_topic_is_told_of_every_alarm_and_of_its_end(everything_template, template):
    topic = ["arn:aws:sns:us-east-1:111122223333:alarms"]
    everything_template.all_resources_properties("AWS::CloudWatch::Alarm", {"AlarmActions": topic, "OKActions": topic})
    template.all_resources_properties("AWS::CloudWatch::Alarm", {"AlarmActions": Match.absent()})


@pytest.fixture(scope="module")
def widgets(template) -> dict[str, str]:
    """The text of each widget, by its title."""
    (dashboard,) = template.find_resources("AWS::CloudWatch::Dashboard").values()
    separator, parts = dashboard["Properties"]["DashboardBody"]["Fn::Join"]
    body = separator.join(part if isinstance(part, str) else "x" for part in parts)
    return {each["properties"].get("title", "heading"): json.dumps(each) for each in json.loads(body)["widgets"]}


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("heading", ["stickysglang"]),
        ("Traffic", ["Invocations", "Turns", "ConcurrentRequestsPerModel"]),
        ("Errors", ["InvocationModelErrors", "Invocation4XXErrors", "Invocation5XXErrors", "SessionsLost"]),
        ("First token", ["TimeToFirstToken", "QueueTime"]),
        ("Latency and overhead", ["ModelLatency", "OverheadLatency"]),
        ("Instances", ["MemoryUtilization", "DiskUtilization", "SampleCount"]),
        ("GPU (a hundred for each)", ["GPUUtilization", "GPUMemoryUtilization"]),
        ("Sessions", ["OpenSessions", "SessionsOpened", "SessionsClosed", "SessionsExpired", "Rerenders"]),
        ("Tokens, cached against computed", ["CachedTokens", "prompt - cached", "CompletionTokens"]),
    ],
)
def test_the_dashboard_shows(widgets, title, shown):
    for name in shown:
        assert name in widgets[title]


def test_the_namespace_of_the_container_is_the_stacks():
    assert container_namespace("prod-StickySglang") == "StickySGLang/prod-StickySglang"
