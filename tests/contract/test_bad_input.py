"""Bad input, each row through boto3: its own code, a message that helps, and no session harmed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from sagemaker_sticky import RequestTooLarge
from sagemaker_sticky_protocol import MAX_BODY_BYTES

from .conftest import Endpoint

SYSTEM = "You remember what the user told you and answer in one short sentence."


@pytest.fixture(scope="module")
def session(endpoint: Endpoint) -> Iterator[str]:
    """A session that has one turn, and must still be as it was when every bad request has been made."""
    with endpoint.client.session(system=SYSTEM) as session:
        session.invoke("My dog is called Rex.", temperature=0)
        yield session.id
        again = session.invoke("What is my dog called?", temperature=0)
        assert "Rex" in again.text
        assert session.turn == 2


def refused(endpoint: Endpoint, body: Any, session: str | None = None, *, stream: bool = False) -> tuple[int, str, str]:
    """Status, code and message with which a request is refused."""
    call = endpoint.runtime.invoke_endpoint_with_response_stream if stream else endpoint.runtime.invoke_endpoint
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(ClientError) as problem:
        call(EndpointName=endpoint.name, Body=data, **({} if session is None else {"SessionId": session}))
    response = problem.value.response
    assert "Traceback" not in str(response)
    if response["Error"]["Code"] != "ModelError":
        return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"], response["Error"]["Message"]
    error = json.loads(response["OriginalMessage"])["error"]
    return response["OriginalStatusCode"], error["code"], error["message"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{not json", "should be a JSON object"),
        (b'"text"', "should be a JSON object, got 'text'"),
        ({"inputs": 7}, "'inputs' should be a string of at least one character, got 7"),
        ({"inputs": ""}, "'inputs' should be a string of at least one character, got ''"),
        ({}, "exactly one of 'inputs', 'messages', 'prompt', got none of them"),
        ({"inputs": "x", "requestType": "SESSIO"}, "got 'SESSIO' (did you mean 'SESSION'?)"),
        ({"inputs": "x", "paramters": {}}, "'paramters' is not a known field here (did you mean 'parameters'?)"),
        ({"inputs": "x", "parameters": {"max_new_tokns": 5}}, "(did you mean 'max_new_tokens'?)"),
        ({"inputs": "x", "parameters": {"temperature": "hot"}}, "should be a number from 0, got 'hot'"),
        ({"messages": [{"role": "user", "content": "x"}], "temprature": 1}, "(did you mean 'temperature'?)"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "'messages[0].role' should be one of"),
        ({"inputs": "x", "rewind": 5}, "'rewind' should be at most the 1 turns of the session, got 5"),
        ({"inputs": "word " * 40_000}, "more than fit the context window of"),
    ],
)
def test_a_bad_turn(endpoint: Endpoint, session: str, body: Any, message: str, stream: bool) -> None:
    status, code, said = refused(endpoint, body, session, stream=stream)
    assert (status, code) == (400, "invalid_request")
    assert message in said


def test_a_body_over_6_mib(endpoint: Endpoint, session: str) -> None:
    status, code, _ = refused(endpoint, {"inputs": "x" * MAX_BODY_BYTES}, session)
    assert (status, code) in ((400, "ValidationError"), (413, "request_too_large"))
    with pytest.raises(RequestTooLarge, match=f"{MAX_BODY_BYTES:,}"):
        endpoint.client.invoke("x" * MAX_BODY_BYTES)


@pytest.mark.parametrize("bad", ["under_score", "dot.ted", "trailing-", "-leading", "a" * 257, "spa ce"])
def test_an_id_that_breaks_the_pattern(endpoint: Endpoint, bad: str) -> None:
    status, code, _ = refused(endpoint, {"inputs": "x"}, bad)
    assert (status, code) == (400, "ValidationError")
    body = {"requestType": "NEW_SESSION", "extSessionID": bad}
    status, code, message = refused(endpoint, body, "NEW_SESSION")
    assert (status, code) == (400, "invalid_request")
    assert "'extSessionID' should be 1 to 256 letters, digits and inner hyphens" in message


def test_an_unknown_session(endpoint: Endpoint) -> None:
    status, code, _ = refused(endpoint, {"inputs": "x"}, f"unknown-{uuid.uuid4()}")
    assert (status, code) in ((404, "session_not_found"), (400, "ValidationError"))


def test_a_second_open_of_the_same_id(endpoint: Endpoint) -> None:
    with endpoint.client.session(session_id="only-once") as session:
        # Whichever instance it reaches: only one knows the id, so ask until that one has been asked.
        answers = []
        for _ in range(40):
            try:
                endpoint.runtime.invoke_endpoint(
                    EndpointName=endpoint.name,
                    SessionId="NEW_SESSION",
                    Body=json.dumps({"requestType": "NEW_SESSION", "extSessionID": session.id}),
                )
            except ClientError as problem:
                answers.append(json.loads(problem.response["OriginalMessage"])["error"])
                break
        assert [each["code"] for each in answers] == ["session_conflict"]
        assert "'only-once' is open already" in answers[0]["message"]
