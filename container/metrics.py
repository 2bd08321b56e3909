"""What is counted: for Prometheus (``/metrics``) and for CloudWatch (EMF lines on stdout).

Sources: the Prometheus naming rules; CloudWatch's Embedded Metric Format specification.
"""

from __future__ import annotations

import json
import time
from collections import Counter as Counts
from collections import deque
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from container.engine import Usage

EMF_SECONDS = 10.0
EMF_VALUES = 100
"""Values of one metric that an EMF line may hold, CloudWatch's limit: of more, the last."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one server. Metrics of the engine itself are the engine's."""

    def __init__(self, open_sessions: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self._open_sessions = open_sessions
        self._window: Counts[str] = Counts()
        self._times: deque[tuple[float, float]] = deque(maxlen=EMF_VALUES)
        Gauge("sticky_open_sessions", "Sessions open now", registry=self.registry).set_function(open_sessions)
        self._sessions = Counter(
            "sticky_sessions", "Sessions by what became of them", ["event"], registry=self.registry
        )
        self._turns = Counter("sticky_turns", "Turns answered", registry=self.registry)
        self._rerenders = Counter(
            "sticky_rerenders", "Turns whose template rewrote the past, rendered anew", registry=self.registry
        )
        tokens = Counter("sticky_tokens", "Tokens of turns", ["kind"], registry=self.registry)
        self._prompt, self._cached, self._completion = map(tokens.labels, ("prompt", "cached", "completion"))
        self._errors = Counter("sticky_errors", "Requests refused or failed", ["code"], registry=self.registry)
        self._first_token = Histogram(
            "sticky_time_to_first_token_seconds",
            "Request to first token",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._queue = Histogram(
            "sticky_queue_seconds", "Wait for the session's earlier turns", buckets=_SECONDS, registry=self.registry
        )

    def session(self, event: str) -> None:
        """A session was ``opened``, ``closed``, ``expired``, ``restored`` after a restart, or ``lost`` in one."""
        self._sessions.labels(event).inc()
        self._window[f"Sessions{event.capitalize()}"] += 1

    def turn(self, usage: Usage, *, first_token_seconds: float, queue_seconds: float, rerendered: bool) -> None:
        """A turn was answered."""
        self._turns.inc()
        self._first_token.observe(first_token_seconds)
        self._queue.observe(queue_seconds)
        self._prompt.inc(usage.prompt_tokens)
        self._cached.inc(usage.cached_tokens)
        self._completion.inc(usage.completion_tokens)
        if rerendered:
            self._rerenders.inc()
        window = self._window
        window["Turns"] += 1
        window["Rerenders"] += rerendered
        window["PromptTokens"] += usage.prompt_tokens
        window["CachedTokens"] += usage.cached_tokens
        window["CompletionTokens"] += usage.completion_tokens
        self._times.append((first_token_seconds, queue_seconds))

    def error(self, code: str) -> None:
        """A request was answered with an error."""
        self._errors.labels(code).inc()

    def prometheus(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)

    def emf(self, namespace: str) -> str:
        """One EMF line for what happened since the last one: counts as sums, times as values."""
        values: dict[str, float | list[float]] = {"OpenSessions": self._open_sessions()}
        values |= {name: count for name, count in self._window.items() if count}
        units = dict.fromkeys(values, "Count")
        if self._times:
            for place, name in enumerate(("TimeToFirstToken", "QueueTime")):
                values[name] = [each[place] for each in self._times]
                units[name] = "Seconds"
        self._window.clear()
        self._times.clear()
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        head = {"Namespace": namespace, "Dimensions": [[]], "Metrics": metrics}
        return json.dumps({"_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [head]}, **values})
