"""What is counted: for Prometheus (``/metrics``) and for CloudWatch (EMF lines on stdout).

Sources: the Prometheus naming rules; CloudWatch's Embedded Metric Format specification.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from container.engine import Usage

EMF_SECONDS = 10.0
EMF_VALUES = 100
"""Values of one metric that an EMF line may hold; CloudWatch's limit."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one server. Metrics of the engine itself are the engine's."""

    def __init__(self, open_sessions: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self._open_sessions = open_sessions
        self._window: dict[str, list[float]] = defaultdict(list)
        Gauge("sticky_open_sessions", "Sessions open now", registry=self.registry).set_function(open_sessions)
        self._sessions = Counter(
            "sticky_sessions", "Sessions by what became of them", ["event"], registry=self.registry
        )
        self._turns = Counter("sticky_turns", "Turns answered", registry=self.registry)
        self._rerenders = Counter(
            "sticky_rerenders", "Turns whose template rewrote the past, rendered anew", registry=self.registry
        )
        self._tokens = Counter("sticky_tokens", "Tokens of turns", ["kind"], registry=self.registry)
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
        self._window[f"Sessions{event.capitalize()}"].append(1)

    def turn(self, usage: Usage, *, first_token_seconds: float, queue_seconds: float, rerendered: bool) -> None:
        """A turn was answered."""
        self._turns.inc()
        self._rerenders.inc(rerendered)
        self._first_token.observe(first_token_seconds)
        self._queue.observe(queue_seconds)
        counts = {
            "prompt": usage.prompt_tokens, "cached": usage.cached_tokens, "completion": usage.completion_tokens,
        }  # fmt: skip
        for kind, count in counts.items():
            self._tokens.labels(kind).inc(count)
            self._window[f"{kind.capitalize()}Tokens"].append(count)
        self._window["Turns"].append(1)
        self._window["TimeToFirstToken"].append(first_token_seconds)
        self._window["QueueTime"].append(queue_seconds)
        if rerendered:
            self._window["Rerenders"].append(1)

    def error(self, code: str) -> None:
        """A request was answered with an error."""
        self._errors.labels(code).inc()

    def prometheus(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)

    def emf(self, namespace: str) -> str:
        """One EMF line for what happened since the last one: counts as sums, times as values."""
        window, self._window = self._window, defaultdict(list)
        values: dict[str, float | list[float]] = {"OpenSessions": self._open_sessions()}
        units = {"OpenSessions": "Count"}
        for name, seen in window.items():
            is_time = name in ("TimeToFirstToken", "QueueTime")
            values[name] = seen[:EMF_VALUES] if is_time else sum(seen)
            units[name] = "Seconds" if is_time else "Count"
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        head = {"Namespace": namespace, "Dimensions": [[]], "Metrics": metrics}
        return json.dumps({"_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [head]}, **values})
