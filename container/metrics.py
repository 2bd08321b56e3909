"""What is counted: for Prometheus (``/metrics``) and for CloudWatch (EMF lines on stdout).

Sources: the Prometheus naming rules; CloudWatch's Embedded Metric Format specification.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from container.engine import Usage

EMF_SECONDS = 10.0
EMF_VALUES = 100
"""Values of one metric that an EMF line may hold, CloudWatch's limit: of more, the last."""

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, float("inf"))


class _Histogram:
    """How many values fell into each bucket. Seconds."""

    def __init__(self) -> None:
        self._counts = [0] * len(_BUCKETS)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_BUCKETS, seconds)] += 1
        self._sum += seconds

    def family(self, name: str, documentation: str) -> Metric:
        total, buckets = 0, []
        for bound, count in zip(_BUCKETS, self._counts, strict=True):
            total += count
            buckets.append((floatToGoString(bound), total))  # type: ignore[no-untyped-call]
        return HistogramMetricFamily(name, documentation, buckets=buckets, sum_value=self._sum)


class Metrics(Collector):
    """The counters of one server. Metrics of the engine itself are the engine's.

    Counts are plain numbers, which a turn adds to at a tenth of the cost of the library's thread-safe counters: all of
    them are counted on the event loop. The library writes them out.
    """

    def __init__(self, open_sessions: Callable[[], int]) -> None:
        self._open_sessions = open_sessions
        self._counts: Counter[str] = Counter()
        self._sessions: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._first_token = _Histogram()
        self._queue = _Histogram()
        self._told: Counter[str] = Counter()
        """What the EMF lines so far have said."""
        self._times: deque[tuple[float, float]] = deque(maxlen=EMF_VALUES)
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def session(self, event: str) -> None:
        """A session was ``opened``, ``closed``, ``expired``, ``restored`` after a restart, or ``lost`` in one."""
        self._sessions[event] += 1

    def turn(self, usage: Usage, *, first_token_seconds: float, queue_seconds: float, rerendered: bool) -> None:
        """A turn was answered."""
        counts = self._counts
        counts["Turns"] += 1
        counts["Rerenders"] += rerendered
        counts["PromptTokens"] += usage.prompt_tokens
        counts["CachedTokens"] += usage.cached_tokens
        counts["CompletionTokens"] += usage.completion_tokens
        self._first_token.observe(first_token_seconds)
        self._queue.observe(queue_seconds)
        self._times.append((first_token_seconds, queue_seconds))

    def error(self, code: str) -> None:
        """A request was answered with an error."""
        self._errors[code] += 1

    def collect(self) -> Iterator[Metric]:
        """What the library asks for when ``/metrics`` is read."""
        counts = self._counts
        yield GaugeMetricFamily("sticky_open_sessions", "Sessions open now", self._open_sessions())
        yield _labelled("sticky_sessions", "Sessions by what became of them", "event", self._sessions)
        yield CounterMetricFamily("sticky_turns", "Turns answered", counts["Turns"])
        rerenders = "Turns whose template rewrote the past, rendered anew"
        yield CounterMetricFamily("sticky_rerenders", rerenders, counts["Rerenders"])
        kinds = {each: counts[f"{each.capitalize()}Tokens"] for each in ("prompt", "cached", "completion")}
        yield _labelled("sticky_tokens", "Tokens of turns", "kind", kinds)
        yield _labelled("sticky_errors", "Requests refused or failed", "code", self._errors)
        yield self._first_token.family("sticky_time_to_first_token_seconds", "Request to first token")
        yield self._queue.family("sticky_queue_seconds", "Wait for the session's earlier turns")

    def prometheus(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self._registry)

    def emf(self, namespace: str) -> str:
        """One EMF line for what happened since the last one: counts as sums, times as values."""
        totals = self._counts + Counter({f"Sessions{each.capitalize()}": n for each, n in self._sessions.items()})
        values: dict[str, float | list[float]] = {"OpenSessions": self._open_sessions()}
        values |= totals - self._told
        self._told = totals
        units = dict.fromkeys(values, "Count")
        if self._times:
            for place, name in enumerate(("TimeToFirstToken", "QueueTime")):
                values[name] = [each[place] for each in self._times]
                units[name] = "Seconds"
        self._times.clear()
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        head = {"Namespace": namespace, "Dimensions": [[]], "Metrics": metrics}
        return json.dumps({"_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [head]}, **values})


def _labelled(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=[label])
    for each, value in values.items():
        family.add_metric([each], value)
    return family
