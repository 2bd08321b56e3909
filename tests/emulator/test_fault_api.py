"""`POST /_emulator/…` on a whole emulator; what callers then see is in tests/recovery."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from emulator import Emulator
from emulator.pytest_plugin import Control, control, emulator

from .conftest import boto3_client
from .processes import wait_for_end

__all__ = ["control", "emulator"]


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Any]:
    client = boto3_client(emulator.url)
    yield client
    client.close()


def opened(client: Any) -> str:
    response = client.invoke_endpoint(
        EndpointName="sticky", SessionId="NEW_SESSION", Body=json.dumps({"requestType": "NEW_SESSION"})
    )
    session_id: str = json.loads(response["Body"].read())["session"]["id"]
    return session_id


def ask(client: Any, session_id: str) -> str:
    response = client.invoke_endpoint(EndpointName="sticky", SessionId=session_id, Body=b'{"inputs": "Hello."}')
    text: str = json.loads(response["Body"].read())["generation"]["text"]
    return text


def begin_stream(client: Any, session_id: str) -> Any:
    return client.invoke_endpoint_with_response_stream(
        EndpointName="sticky", SessionId=session_id, Body=b'{"inputs": "Hello.", "stream": true}'
    )["Body"]


def test_instances_come_and_go(emulator: Emulator, control: Control) -> None:
    [added] = control.add()
    assert added in control.instances
    pid = emulator.fleet.instances[added].pid
    control.kill(added)
    assert added not in control.instances
    assert wait_for_end(pid)


def test_a_drained_instance_ends_by_itself(emulator: Emulator, control: Control) -> None:
    [added] = control.add()
    pid = emulator.fleet.instances[added].pid
    control.drain(added)
    assert added not in control.instances
    assert wait_for_end(pid)


def test_a_session_is_forgotten_by_the_router_alone(client: Any, control: Control) -> None:
    session_id = opened(client)
    assert control.sessions[session_id] in control.instances
    control.forget(session_id)
    assert session_id not in control.sessions
    with pytest.raises(ValueError, match="no session"):
        control.forget(session_id)


def test_a_session_expires(client: Any, control: Control) -> None:
    session_id = opened(client)
    control.expire(session_id)
    for call in (ask, begin_stream):
        with pytest.raises(ClientError) as caught:
            call(client, session_id)
        assert json.loads(caught.value.response["OriginalMessage"])["error"]["code"] == "session_expired"


def test_a_fault_happens_and_is_over(client: Any, control: Control) -> None:
    session_id = opened(client)
    control.fault(session=session_id, operation="stream", break_after_bytes=50, part_bytes=[1, 3])
    assert ask(client, session_id) == "You said: Hello."
    received = []
    with closing(begin_stream(client, session_id)) as events, pytest.raises(EventStreamError, match="ModelStreamError"):
        received.extend(event["PayloadPart"]["Bytes"] for event in events)
    assert [len(part) for part in received[:4]] == [1, 3, 1, 3]
    assert sum(map(len, received)) == 50
    assert control.faults == []


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/faults", {"nothing": 1}, "'nothing' is not known"),
        ("/instances", {"count": 0}, "'count' should be from 1 to 16, got 0"),
        ("/instances/nobody/kill", {}, "no instance 'nobody'; there are instance-"),
        ("/sessions/nothing/expire", {}, "no session 'nothing'"),
    ],
)
def test_what_is_wrong_is_told(control: Control, path: str, body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        control._post(path, **body)


def test_clear_takes_all_of_it_back(client: Any, control: Control) -> None:
    control.fault(answer=400, times=5)
    control.clear()
    assert control.faults == []
    assert ask(client, opened(client)) == "You said: Hello."
