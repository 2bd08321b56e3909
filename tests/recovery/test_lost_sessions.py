"""A lost session is not the caller's problem: the answer comes, and `reopened` counts up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sagemaker_sticky import (
    EndpointFailed,
    EngineUnavailable,
    InvalidRequest,
    Session,
    SessionLost,
    StickyClient,
    TimedOut,
)

from emulator import Emulator, Readings, running_emulator
from emulator.pytest_plugin import Control
from tests.container.conftest import wait_until

from .conftest import is_ready
from .conversation import FIRST, SECOND, THIRD, begun, prompt_tokens, reply, transcript

Make = Callable[..., StickyClient]


def goes_on(client: StickyClient, session: Session, *, reopened: int = 1) -> None:
    """The second turn is answered as if nothing had happened, and the third finds its place too."""
    old = session.id
    second = session.invoke(SECOND)
    assert second.text == reply(SECOND)
    assert second.usage.prompt_tokens == prompt_tokens(client, FIRST, SECOND)
    assert (session.reopened, session.turn, session.id != old) == (reopened, 2, bool(reopened))
    assert "".join(session.stream(THIRD)) == reply(THIRD)
    assert (session.reopened, session.turn) == (reopened, 3)
    assert session.messages == transcript(FIRST, SECOND, THIRD)
    session.close()


READINGS = {
    "forgotten and passed on": Readings(),
    "forgotten and refused": Readings(unknown_session="reject"),
    "kept in vain": Readings(lost_instance="keep"),
}


@pytest.fixture(scope="module", params=READINGS.values(), ids=READINGS)
def each_reading(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    with running_emulator(instances=3, engine="echo", readings=request.param) as emulator:
        yield emulator


def test_the_instance_is_gone(each_reading: Emulator, make_client: Make) -> None:
    client, control = make_client(each_reading), Control(each_reading.url)
    session = begun(client)
    control.kill(control.sessions[session.id])
    goes_on(client, session)


def test_the_session_was_closed_elsewhere(each_reading: Emulator, make_client: Make) -> None:
    client = make_client(each_reading)
    session = begun(client)
    client.attach(session.id).close()
    goes_on(client, session)


def test_the_session_went_on_elsewhere(each_reading: Emulator, make_client: Make) -> None:
    client = make_client(each_reading)
    session = begun(client)
    client.attach(session.id).invoke("Something that nobody else heard.")
    goes_on(client, session)


def test_the_session_expired(each_reading: Emulator, make_client: Make) -> None:
    client = make_client(each_reading)
    session = begun(client)
    Control(each_reading.url).expire(session.id)
    goes_on(client, session)


def test_the_router_forgot_the_session(client: StickyClient, control: Control) -> None:
    for _ in range(6):  # by chance it reaches the instance that still has it, and nothing was lost
        session = begun(client)
        control.forget(session.id)
        assert session.invoke(SECOND).text == reply(SECOND)
        assert session.reopened <= 1
        if session.reopened:
            return
    pytest.fail("six times in a row it reached the same one of two instances")


def test_the_router_answers_400_in_words_that_nobody_documented(client: StickyClient, control: Control) -> None:
    session = begun(client)
    control.fault(session=session.id, answer=400, message="Something is amiss.")
    goes_on(client, session)


def test_an_endpoint_that_answers_400_to_everything_is_asked_to_open_once(
    client: StickyClient, control: Control
) -> None:
    session = begun(client)
    control.fault(answer=400, message="Something is amiss.", times=9)
    with pytest.raises(InvalidRequest, match="amiss"):
        session.invoke(SECOND)
    assert control.faults[0]["times"] == 7
    control.clear()
    assert session.invoke(SECOND).text == reply(SECOND)


def test_a_turn_is_said_again_once(client: StickyClient, control: Control) -> None:
    session = begun(client)
    control.fault(operation="stream", answer=400, times=9)
    with pytest.raises(InvalidRequest):
        session.stream(SECOND)
    assert (control.faults[0]["times"], session.reopened) == (7, 1)


@pytest.mark.parametrize(
    ("code", "error"), [("internal", EndpointFailed), ("engine_unavailable", EngineUnavailable), (None, EndpointFailed)]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_failing_model_is_not_asked_again(
    client: StickyClient, control: Control, code: str | None, error: type[Exception], stream: bool
) -> None:
    session = begun(client)
    control.fault(answer=424, code=code, message="oh", times=2)
    with pytest.raises(error):
        (session.stream if stream else session.invoke)(SECOND)
    assert len(control.faults) == 1
    control.clear()
    goes_on(client, session, reopened=0)


def test_recovery_can_be_turned_off(client: StickyClient, control: Control) -> None:
    with client.session(recover=False) as session:
        session.invoke(FIRST)
        control.expire(session.id)
        with pytest.raises(SessionLost) as caught:
            session.invoke(SECOND)
    assert caught.value.code == "session_expired"


@pytest.fixture(scope="module")
def slow() -> Iterator[Emulator]:
    """Half a second for a dozen tokens: time enough to do something about it."""
    with running_emulator(instances=2, engine="echo", environment={"STICKY_ECHO_TOKEN_S": "0.05"}) as emulator:
        yield emulator


def test_the_instance_drains(slow: Emulator, make_client: Make) -> None:
    client, control = make_client(slow), Control(slow.url)
    session, other = begun(client), client.session().open()
    home = control.sessions[session.id]
    while control.sessions[other.id] != home:
        other.close()
        other = client.session().open()
    stream = other.stream("a long story " * 20)
    next(stream)
    instance = slow.fleet.instances[home]
    control.drain(home)  # it waits for the stream that runs there
    wait_until(lambda: not is_ready(instance.url))
    try:
        assert session.invoke(SECOND).text == reply(SECOND)
        assert (session.reopened, session.served_by != home) == (1, True)
        assert next(stream)
    finally:
        stream.close()
        control.add()


def test_an_instance_that_dies_in_the_middle_of_a_turn(slow: Emulator, make_client: Make) -> None:
    client, control = make_client(slow), Control(slow.url)
    session = begun(client)
    home = control.sessions[session.id]
    with session.stream(SECOND, resume=True) as stream:
        pieces = [next(stream)]
        control.kill(home)
        pieces += stream
    assert "".join(pieces) == stream.text == reply(SECOND)
    assert (session.reopened, session.turn, session.messages) == (1, 2, transcript(FIRST, SECOND))
    control.add()


def test_a_turn_that_was_too_late_does_not_count(emulator: Emulator, control: Control, make_client: Make) -> None:
    client = make_client(emulator, read_timeout=0.3)
    session = begun(client)
    control.fault(session=session.id, delay_seconds=1.0)
    with pytest.raises(TimedOut, match="stream what is long"):
        session.invoke("Forget this.")
    assert session.turn == 1
    goes_on(client, session, reopened=0)


def test_a_response_that_is_cut_does_not_count(client: StickyClient, control: Control) -> None:
    session = begun(client)
    for fault in ({"cut_after_bytes": 0}, {"cut_after_bytes": 7}, {"break_after_bytes": 7}):
        control.fault(session=session.id, **fault)
        with pytest.raises(Exception, match=r"(?i)connection|entire response|incomplete|broken"):
            session.invoke("Forget this.")
    goes_on(client, session, reopened=0)


def test_a_session_of_its_own_life(client: StickyClient) -> None:
    with client.session() as longer, client.session(ttl=90) as shorter:
        assert longer.expires_at is not None
        assert shorter.expires_at is not None
        assert (longer.expires_at - shorter.expires_at).total_seconds() > 60


def test_an_instance_of_the_old_session_keeps_nothing(client: StickyClient, control: Control) -> None:
    before = set(control.sessions)
    session = begun(client)
    control.expire(session.id)
    goes_on(client, session)
    assert set(control.sessions) == before


def test_a_transcript_too_large_to_send_again_is_told(client: StickyClient, control: Control) -> None:
    huge = {"role": "assistant", "content": "x" * (6 * 1024 * 1024)}
    session = client.attach("gone", messages=[{"role": "user", "content": "?"}, huge])
    with pytest.raises(InvalidRequest, match=r"[\d,]+ more than the 6,291,456") as caught:
        session.invoke(SECOND)
    assert isinstance(caught.value.__context__, SessionLost)
    assert caught.value.code == "request_too_large"
