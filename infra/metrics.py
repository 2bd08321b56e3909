"""The metrics of an endpoint: SageMaker's own, and the container's, which CloudWatch reads from its log (EMF)."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

PERIOD_SECONDS = 60
"""SageMaker publishes once a minute."""


def container_namespace(stack_name: str) -> str:
    """Namespace of the container's metrics: SageMaker does not tell a container which endpoint it serves."""
    return f"StickySGLang/{stack_name}"


class EndpointMetrics:
    """Makes metrics of one endpoint, by the names that AWS and the container gave them.

    Args:
        endpoint_name: As SageMaker knows it.
        variant_name: As in the endpoint's configuration.
        namespace: Of the container's own metrics.
    """

    def __init__(self, *, endpoint_name: str, variant_name: str, namespace: str) -> None:
        self._dimensions = {"EndpointName": endpoint_name, "VariantName": variant_name}
        self._namespace = namespace

    def invocation(self, name: str, *, statistic: str = "Sum", label: str | None = None) -> cloudwatch.Metric:
        """Of calls: Invocations, ModelLatency and OverheadLatency (microseconds), Invocation4XXErrors and others."""
        return self._metric("AWS/SageMaker", name, statistic, label, self._dimensions)

    def instance(self, name: str, *, statistic: str = "Average", label: str | None = None) -> cloudwatch.Metric:
        """Of instances, in percent; those of GPUs and of CPUs add up over all of them, so that eight GPUs make 800."""
        return self._metric("/aws/sagemaker/Endpoints", name, statistic, label, self._dimensions)

    def container(self, name: str, *, statistic: str = "Sum", label: str | None = None) -> cloudwatch.Metric:
        """Of the container: OpenSessions, Turns, PromptTokens, CachedTokens, TimeToFirstToken (seconds) and others."""
        return self._metric(self._namespace, name, statistic, label, None)

    def model_error_percent(self) -> cloudwatch.MathExpression:
        """Share of calls that failed in the container or timed out; what a caller did wrong (4XX) is not counted."""
        return cloudwatch.MathExpression(
            expression="IF(calls > 0, 100 * (failed - refused) / calls, 0)",
            label="Model errors (%)",
            period=Duration.seconds(PERIOD_SECONDS),
            using_metrics={
                "calls": self.invocation("Invocations"),
                "failed": self.invocation("InvocationModelErrors"),
                "refused": self.invocation("Invocation4XXErrors"),
            },
        )

    def _metric(
        self, namespace: str, name: str, statistic: str, label: str | None, dimensions: dict[str, Any] | None
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=name,
            dimensions_map=dimensions,
            statistic=statistic,
            label=label,
            period=Duration.seconds(PERIOD_SECONDS),
        )
