"""The whole emulator, with real containers on the echo engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator import Emulator, running_emulator
from emulator.container_process import ContainerFailed
from emulator.server import bound_socket

from .conftest import boto3_client
from .processes import wait_for_end


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with running_emulator(instances=2, engine="echo") as running:
        yield running


@pytest.fixture(scope="module")
def client(emulator: Emulator) -> Iterator[Any]:
    client = boto3_client(emulator.url)
    yield client
    client.close()


def invoke(client: Any, body: dict[str, Any], session_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    response = client.invoke_endpoint(EndpointName="sticky", SessionId=session_id, Body=json.dumps(body))
    return response, json.loads(response["Body"].read())


def test_a_session_from_open_to_close(emulator: Emulator, client: Any) -> None:
    homes = set()
    for number in range(12):
        opened, body = invoke(client, {"requestType": "NEW_SESSION"}, "NEW_SESSION")
        session_id = body["session"]["id"]
        assert opened["NewSessionId"] == f"{session_id}; Expires={body['session']['expires_at']}"
        home = body["session"]["served_by"]
        assert emulator.router.sessions[session_id] == home
        homes.add(home)
        for turn in (1, 2, 3):
            _, body = invoke(client, {"requestType": "SESSION", "inputs": f"I am {number}."}, session_id)
            assert (body["session"]["served_by"], body["session"]["turn"]) == (home, turn)
        closed, _ = invoke(client, {"requestType": "CLOSE"}, session_id)
        assert closed["ClosedSessionId"] == session_id
    assert homes == {"instance-1", "instance-2"}
    assert emulator.router.sessions == {}


def test_a_streamed_turn(client: Any) -> None:
    _, body = invoke(client, {"requestType": "NEW_SESSION"}, "NEW_SESSION")
    response = client.invoke_endpoint_with_response_stream(
        EndpointName="sticky", SessionId=body["session"]["id"], Body=json.dumps({"inputs": "Hello.", "stream": True})
    )
    assert response["ContentType"].startswith("text/event-stream")
    received = b"".join(event["PayloadPart"]["Bytes"] for event in response["Body"])
    assert received.startswith(b"data: {")
    assert received.endswith(b"data: [DONE]\n\n")


def test_a_session_that_no_container_knows(client: Any) -> None:
    with pytest.raises(ClientError) as caught:
        invoke(client, {"inputs": "Hello."}, "gone")
    response = caught.value.response
    assert (response["Error"]["Code"], response["OriginalStatusCode"]) == ("ModelError", 404)
    assert json.loads(response["OriginalMessage"])["error"]["code"] == "session_not_found"


def test_the_environment_finds_the_emulator(emulator: Emulator) -> None:
    assert emulator.environment["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"] == emulator.url


def test_the_fleet_from_another_thread() -> None:
    with running_emulator(instances=1, engine="echo") as emulator:
        assert emulator.call(emulator.fleet.add()) == ["instance-2"]
        pids = [each.pid for each in emulator.fleet.instances.values()]
        emulator.call(emulator.fleet.remove("instance-1"))
        assert emulator.router.instances == ("instance-2",)
    assert all(wait_for_end(pid, seconds=0) for pid in pids)


def test_a_wrong_option_is_told_before_anything_starts() -> None:
    with pytest.raises(ValueError, match="'engine' should be one of"):
        running_emulator(engine="ecko")


def test_a_container_that_fails_is_told() -> None:
    failing = running_emulator(instances=1, engine="echo", environment={"SES_TTL_MIN": "soon"})
    with pytest.raises(ContainerFailed, match="'SES_TTL_MIN' should be a number"), failing:
        pass


def test_a_port_that_is_taken_is_told() -> None:
    with bound_socket(0) as taken:
        taken.listen()
        busy = running_emulator(engine="echo", port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"), busy:
            pass
