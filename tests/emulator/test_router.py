from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from emulator.config import Readings
from emulator.router import NoInstance, Router, UnknownSession

NEW = "NEW_SESSION"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_router(clock: Clock, *instances: str, strategy: str = "RANDOM", **readings: Any) -> Router:
    router = Router(routing_strategy=strategy, readings=Readings(**readings), clock=clock, random=Random(7))
    for each in instances or ("a", "b", "c"):
        router.add_instance(each)
    return router


def routes(router: Router, session_id: str | None, times: int = 60) -> set[str]:
    return {router.route(session_id) for _ in range(times)}


def test_a_session_stays_on_the_instance_that_opened_it(clock: Clock) -> None:
    router = make_router(clock)
    router.opened("s-a", "a", 2000)
    router.opened("s-b", "b", 2000)
    assert (routes(router, "s-a"), routes(router, "s-b")) == ({"a"}, {"b"})


@pytest.mark.parametrize("asked", [None, NEW])
def test_random_spreads_what_has_no_session_yet(clock: Clock, asked: str | None) -> None:
    router = make_router(clock)
    counts = Counter(router.route(asked) for _ in range(300))
    assert set(counts) == {"a", "b", "c"}
    assert min(counts.values()) > 60


def test_the_dice_are_injected() -> None:
    def order(seed: int) -> list[str]:
        router = Router(random=Random(seed))
        router.add_instance("a")
        router.add_instance("b")
        return [router.route(None) for _ in range(30)]

    assert order(3) == order(3) != order(4)


def test_a_session_ends_at_its_expiry(clock: Clock) -> None:
    router = make_router(clock, unknown_session="reject")
    router.opened("s", "a", 1100)
    clock.now = 1099.9
    assert router.route("s") == "a"
    clock.now = 1100
    with pytest.raises(UnknownSession):
        router.route("s")
    assert router.sessions == {}


def test_an_unknown_session_forwarded_goes_anywhere(clock: Clock) -> None:
    assert routes(make_router(clock, unknown_session="forward"), "nobody") == {"a", "b", "c"}


def test_an_unknown_session_rejected(clock: Clock) -> None:
    with pytest.raises(UnknownSession):
        make_router(clock, unknown_session="reject").route("nobody")


@pytest.mark.parametrize("reading", ["forward", "reject"])
def test_closing_an_unknown_session_is_rejected_under_every_reading(clock: Clock, reading: str) -> None:
    router = make_router(clock, unknown_session=reading)
    router.opened("s", "a", 2000)
    assert router.route("s", closes=True) == "a"
    router.closed("s")
    with pytest.raises(UnknownSession):
        router.route("s", closes=True)


def test_closing_twice_is_harmless(clock: Clock) -> None:
    router = make_router(clock)
    router.closed("s")
    assert router.sessions == {}


def test_an_instance_that_goes_takes_its_sessions_with_it(clock: Clock) -> None:
    router = make_router(clock, lost_instance="forget")
    router.opened("s-a", "a", 2000)
    router.opened("s-b", "b", 2000)
    router.remove_instance("a")
    assert router.sessions == {"s-b": "b"}
    assert routes(router, "s-a") == {"b", "c"}


def test_a_kept_session_still_points_to_the_instance_that_went(clock: Clock) -> None:
    router = make_router(clock, lost_instance="keep")
    router.opened("s", "a", 2000)
    router.remove_instance("a")
    assert routes(router, "s") == {"a"}
    assert routes(router, None) == {"b", "c"}


@pytest.mark.parametrize(("reading", "alive"), [("ignored", False), ("renews", True)])
def test_a_later_expiry(clock: Clock, reading: str, alive: bool) -> None:
    router = make_router(clock, later_expiry=reading)
    router.opened("s", "a", 1100)
    router.announced_again("s", 1200)
    clock.now = 1150
    assert ("s" in router.sessions) is alive


def test_an_expiry_of_an_unknown_session_opens_nothing(clock: Clock) -> None:
    router = make_router(clock, later_expiry="renews")
    router.announced_again("s", 1200)
    assert router.sessions == {}


@pytest.mark.parametrize(("reading", "instances"), [("strategy", {"c"}), ("random", {"a", "b", "c"})])
def test_who_places_a_new_session(clock: Clock, reading: str, instances: set[str]) -> None:
    router = make_router(clock, strategy="LEAST_OUTSTANDING_REQUESTS", new_session=reading)
    with router.outstanding("a"), router.outstanding("b"):
        assert routes(router, NEW) == instances
        assert routes(router, None) == {"c"}


def test_least_outstanding_requests_throws_dice_between_equals(clock: Clock) -> None:
    router = make_router(clock, strategy="LEAST_OUTSTANDING_REQUESTS")
    with router.outstanding("a"):
        assert routes(router, None) == {"b", "c"}


def test_a_request_that_failed_is_no_longer_outstanding(clock: Clock) -> None:
    router = make_router(clock, "a", "b", strategy="LEAST_OUTSTANDING_REQUESTS")
    with pytest.raises(ZeroDivisionError), router.outstanding("a"):
        raise ZeroDivisionError
    assert routes(router, None) == {"a", "b"}


@pytest.mark.parametrize("asked", [None, NEW, "nobody"])
def test_no_instance_in_service(clock: Clock, asked: str | None) -> None:
    router = make_router(clock, "a")
    router.remove_instance("a")
    with pytest.raises(NoInstance):
        router.route(asked)


def test_an_instance_is_in_service_once(clock: Clock) -> None:
    router = make_router(clock, "a", "a", "b")
    assert router.instances == ("a", "b")


def test_prefix_aware_sends_what_begins_alike_to_one_instance(clock: Clock) -> None:
    router = make_router(clock, strategy="PREFIX_AWARE")
    prefixes = [f"prompt {number}" for number in range(60)]
    homes = {prefix: router.route(None, prefix=prefix) for prefix in prefixes}
    assert set(homes.values()) == {"a", "b", "c"}
    assert all(router.route(None, prefix=prefix) == home for prefix, home in homes.items())
    router.remove_instance("a")
    assert all(router.route(None, prefix=prefix) == home for prefix, home in homes.items() if home != "a")


def test_prefix_aware_leaves_an_instance_at_its_threshold(clock: Clock) -> None:
    router = Router(routing_strategy="PREFIX_AWARE", prefix_concurrency_threshold=2, clock=clock, random=Random(7))
    for each in ("a", "b"):
        router.add_instance(each)
    home = router.route(None, prefix="prompt")
    with router.outstanding(home), router.outstanding(home):
        assert router.route(None, prefix="prompt") != home
    assert router.route(None, prefix="prompt") == home


def test_prefix_aware_leaves_sessions_where_they_are(clock: Clock) -> None:
    router = make_router(clock, strategy="PREFIX_AWARE")
    router.opened("s", "b", 2000)
    assert {router.route("s", prefix=number) for number in range(20)} == {"b"}
