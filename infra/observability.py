"""Alarms, which also decide on rolling an update back, and the dashboard."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.config import InfraConfig
from infra.instance_types import INSTANCE_TYPES
from infra.metrics import PERIOD_SECONDS, EndpointMetrics

MODEL_ERROR_PERCENT = 5
DISK_PERCENT = 90
GPU_MEMORY_PERCENT = 98
"""SGLang takes its share of the memory as it starts, about 90 %; more than this, and the next allocation fails."""
HALF, WHOLE = 12, 24
"""Widths on the dashboard's grid."""


class Alarms(Construct):
    """What a person should be told.

    Attributes:
        all: Every alarm.
        rollback: Those that end an update; they are there before the endpoint is.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig, metrics: EndpointMetrics) -> None:
        super().__init__(scope, id)
        gpus = INSTANCE_TYPES[config.instance_type].gpus  # and of the types to fall back on
        self.rollback = [
            self._alarm(
                "ModelErrors",
                metrics.model_error_percent(),
                threshold=MODEL_ERROR_PERCENT,
                description=f"More than {MODEL_ERROR_PERCENT} % of calls failed in the container.",
            ),
            self._alarm(
                "Latency",
                # Not ModelLatency, of which a stream may take as long as its answer is.
                metrics.container("TimeToFirstToken", statistic="p90"),
                threshold=config.alarm_first_token_seconds,
                description=f"One turn in ten waits over {config.alarm_first_token_seconds:g} s for its first token.",
            ),
            self._alarm(
                "Disk",
                metrics.instance("DiskUtilization", statistic="Maximum"),
                threshold=DISK_PERCENT,
                description=f"An instance's disk is over {DISK_PERCENT} % full.",
            ),
            self._alarm(
                "GpuMemory",
                metrics.instance("GPUMemoryUtilization", statistic="Maximum"),
                threshold=GPU_MEMORY_PERCENT * gpus,
                description=f"GPU memory is over {GPU_MEMORY_PERCENT} % full, of {gpus} x 100 %.",
            ),
        ]
        # Not for rollback: it is on from the start, until the first instance reports.
        no_instance = self._alarm(
            "NoHealthyInstance",
            metrics.instance("CPUUtilization", statistic="SampleCount"),
            threshold=1,
            description="No instance has reported for five minutes.",
            comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            missing=cloudwatch.TreatMissingData.BREACHING,
            datapoints=5,
        )
        self.all = [*self.rollback, no_instance]
        if config.alarm_topic_arn:
            topic = sns.Topic.from_topic_arn(self, "Topic", config.alarm_topic_arn)
            for alarm in self.all:
                alarm.add_alarm_action(actions.SnsAction(topic))
                alarm.add_ok_action(actions.SnsAction(topic))

    def _alarm(
        self,
        id: str,
        metric: cloudwatch.IMetric,
        *,
        threshold: float,
        description: str,
        comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
        datapoints: int = 3,
    ) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            id,
            metric=metric,
            threshold=threshold,
            comparison_operator=comparison,
            treat_missing_data=missing,
            evaluation_periods=5,
            datapoints_to_alarm=datapoints,
            alarm_description=description,
        )


class Dashboard(cloudwatch.Dashboard):
    """One page: traffic, latency and overhead, errors, instances, GPU, sessions, tokens cached against computed."""

    def __init__(
        self, scope: Construct, id: str, *, endpoint_name: str, metrics: EndpointMetrics, alarms: Alarms
    ) -> None:
        super().__init__(scope, id, default_interval=Duration.hours(3))
        title = cloudwatch.TextWidget(
            markdown=f"# {endpoint_name}\nLog: `/aws/sagemaker/Endpoints/{endpoint_name}`. Sessions and tokens are the "
            "container's own metrics; open sessions are counted per instance.",
            width=HALF,
            height=3,
        )
        self.add_widgets(title, cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms.all, width=HALF, height=3))
        self.add_widgets(*_traffic(metrics))
        self.add_widgets(*_latency(metrics))
        self.add_widgets(*_machines(metrics))
        self.add_widgets(*_sessions(metrics))


def _graph(
    title: str,
    *left: cloudwatch.IMetric,
    unit: str,
    right: list[cloudwatch.IMetric] | None = None,
    stacked: bool = False,
) -> cloudwatch.GraphWidget:
    axis = cloudwatch.YAxisProps(label=unit, show_units=False, min=0)
    return cloudwatch.GraphWidget(
        title=title, left=list(left), right=right or [], left_y_axis=axis, width=HALF, height=6, stacked=stacked
    )


def _traffic(metrics: EndpointMetrics) -> list[cloudwatch.IWidget]:
    traffic = _graph(
        "Traffic",
        metrics.invocation("Invocations", label="Calls"),
        metrics.container("Turns", label="Turns in sessions"),
        right=[metrics.invocation("ConcurrentRequestsPerModel", statistic="Maximum", label="At once, on an instance")],
        unit="a minute",
    )
    errors = _graph(
        "Errors",
        metrics.invocation("InvocationModelErrors", label="Failed in the container"),
        metrics.invocation("Invocation4XXErrors", label="Refused (4XX)"),
        metrics.invocation("Invocation5XXErrors", label="5XX"),
        metrics.container("SessionsLost", label="Sessions lost"),
        unit="a minute",
    )
    return [traffic, errors]


def _latency(metrics: EndpointMetrics) -> list[cloudwatch.IWidget]:
    waiting = _graph(
        "First token",
        metrics.container("TimeToFirstToken", statistic="p50", label="half of the turns"),
        metrics.container("TimeToFirstToken", statistic="p90", label="9 in 10"),
        metrics.container("QueueTime", statistic="p90", label="of which in the queue, 9 in 10"),
        unit="seconds",
    )
    whole = _graph(
        "Latency and overhead",
        metrics.invocation("ModelLatency", statistic="p50", label="Model, half of the calls"),
        metrics.invocation("ModelLatency", statistic="p90", label="Model, 9 in 10"),
        metrics.invocation("OverheadLatency", statistic="p90", label="SageMaker's overhead, 9 in 10"),
        unit="microseconds",
    )
    return [waiting, whole]


def _machines(metrics: EndpointMetrics) -> list[cloudwatch.IWidget]:
    instances = _graph(
        "Instances",
        metrics.instance("MemoryUtilization", label="Memory"),
        metrics.instance("DiskUtilization", statistic="Maximum", label="Disk, fullest"),
        right=[metrics.instance("CPUUtilization", statistic="SampleCount", label="Reporting")],
        unit="%",
    )
    gpu = _graph(
        "GPU (a hundred for each)",
        metrics.instance("GPUUtilization", label="Busy"),
        metrics.instance("GPUMemoryUtilization", statistic="Maximum", label="Memory, fullest"),
        unit="%",
    )
    return [instances, gpu]


def _sessions(metrics: EndpointMetrics) -> list[cloudwatch.IWidget]:
    sessions = _graph(
        "Sessions",
        *(metrics.container(f"Sessions{each}", label=each) for each in ("Opened", "Closed", "Expired")),
        metrics.container("Rerenders", label="Transcripts rendered anew"),
        right=[metrics.container("OpenSessions", statistic="Maximum", label="Open, on the fullest instance")],
        unit="a minute",
    )
    computed = cloudwatch.MathExpression(
        expression="prompt - cached",
        label="Prompt tokens computed",
        period=Duration.seconds(PERIOD_SECONDS),
        using_metrics={"prompt": metrics.container("PromptTokens"), "cached": metrics.container("CachedTokens")},
    )
    tokens = _graph(
        "Tokens, cached against computed",
        metrics.container("CachedTokens", label="Prompt tokens from the cache"),
        computed,
        metrics.container("CompletionTokens", label="Generated"),
        unit="a minute",
        stacked=True,
    )
    return [sessions, tokens]
