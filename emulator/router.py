"""SageMaker's router: which instance takes a request. No network; the clock and the dice are injected.

Sources: SageMaker's "Stateful sessions", ``ProductionVariant.RoutingConfig`` and ``PrefixAwareRoutingConfig``. The
container makes a session's id and expiry; the router only remembers where it lives.
:class:`emulator.config.Readings` decides what AWS leaves open.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from sagemaker_sticky_protocol import NEW_SESSION

from emulator.config import Readings


class UnknownSession(Exception):
    """The router has no such session: it never had, it expired, it was closed, or its instance is gone."""


class NoInstance(Exception):
    """No instance is in service."""


@dataclass(slots=True)
class _Row:
    instance: str
    expires_at: float


class Router:
    """The sticky table and the instances in service.

    ``clock`` gives Unix seconds, because containers announce expiry as wall-clock time.
    """

    def __init__(
        self,
        *,
        routing_strategy: str = "RANDOM",
        prefix_concurrency_threshold: int = 16,
        readings: Readings | None = None,
        clock: Callable[[], float] = time.time,
        random: Random | None = None,
    ) -> None:
        self._strategy = routing_strategy
        self._threshold = prefix_concurrency_threshold
        self._readings = readings or Readings()
        self._clock = clock
        self._random = random or Random()
        self._instances: list[str] = []
        self._outstanding: Counter[str] = Counter()
        self._sessions: dict[str, _Row] = {}

    @property
    def instances(self) -> tuple[str, ...]:
        """The instances in service, in the order in which they came."""
        return tuple(self._instances)

    @property
    def sessions(self) -> dict[str, str]:
        """The instance of each session that has not expired, by session id."""
        self._drop_expired()
        return {session_id: row.instance for session_id, row in self._sessions.items()}

    def add_instance(self, instance: str) -> None:
        """Take an instance into service."""
        if instance not in self._instances:
            self._instances.append(instance)

    def retire_instance(self, instance: str) -> None:
        """Send nothing new to an instance that is going away; its sessions still find it."""
        if instance in self._instances:
            self._instances.remove(instance)

    def remove_instance(self, instance: str) -> None:
        """Take an instance out of service; its sessions are lost (reading ``lost_instance``)."""
        if instance in self._instances:
            self._instances.remove(instance)
        if self._readings.lost_instance == "forget":
            self._sessions = {id_: row for id_, row in self._sessions.items() if row.instance != instance}

    def route(self, session_id: str | None, *, closes: bool = False, prefix: object = None) -> str:
        """The instance that takes a request.

        Args:
            session_id: an id, ``NEW_SESSION``, or None for a request without a session.
            closes: the request closes its session.
            prefix: what decides under PREFIX_AWARE, by its repr.

        Raises:
            UnknownSession: the session is not in the table and the request is a close, or the reading is ``reject``.
            NoInstance: nothing is in service.
        """
        if session_id is not None and session_id != NEW_SESSION:
            self._drop_expired()
            row = self._sessions.get(session_id)
            if row is not None:
                return row.instance
            if closes or self._readings.unknown_session == "reject":
                raise UnknownSession(session_id)
        if not self._instances:
            raise NoInstance
        if session_id == NEW_SESSION and self._readings.new_session == "random":
            return self._random.choice(self._instances)
        return self._by_strategy(prefix)

    def opened(self, session_id: str, instance: str, expires_at: float) -> None:
        """A container announced a session that lives until ``expires_at`` (Unix seconds)."""
        self._drop_expired()
        self._sessions[session_id] = _Row(instance, expires_at)

    def announced_again(self, session_id: str, expires_at: float) -> None:
        """A container sent the session's expiry again, with a turn (reading ``later_expiry``)."""
        row = self._sessions.get(session_id)
        if row is not None and self._readings.later_expiry == "renews":
            row.expires_at = max(row.expires_at, expires_at)

    def closed(self, session_id: str) -> None:
        """A container closed a session."""
        self._sessions.pop(session_id, None)

    @contextmanager
    def outstanding(self, instance: str) -> Iterator[None]:
        """Count a request as in flight on ``instance``; a stream counts until its last byte."""
        self._outstanding[instance] += 1
        try:
            yield
        finally:
            self._outstanding[instance] -= 1

    def _by_strategy(self, prefix: object) -> str:
        if self._strategy == "RANDOM":
            return self._random.choice(self._instances)
        if self._strategy == "PREFIX_AWARE":
            # Rendezvous hashing: an instance that comes or goes moves only the prefixes that it takes or had.
            home = max(self._instances, key=lambda each: hashlib.sha256(repr((each, prefix)).encode()).digest())
            if self._outstanding[home] < self._threshold:
                return home
        fewest = min(self._outstanding[each] for each in self._instances)
        return self._random.choice([each for each in self._instances if self._outstanding[each] == fewest])

    def _drop_expired(self) -> None:
        now = self._clock()
        for session_id in [id_ for id_, row in self._sessions.items() if row.expires_at <= now]:
            del self._sessions[session_id]
