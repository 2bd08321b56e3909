from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError
from sagemaker_sticky import StickyClient, Usage
from sagemaker_sticky.compat import StatefulSMEDPBuilder

from .conftest import Endpoint

SYSTEM = "You remember what the user told you and answer in one short sentence."
QUESTIONS = ("My dog is called Rex.", "What do dogs like to eat?", "What is my dog called?")


def test_the_third_turn_knows_the_first_and_computes_only_new_tokens(client: StickyClient) -> None:
    with client.session(system=SYSTEM) as session:
        turns = [session.invoke(question, temperature=0) for question in QUESTIONS]
    assert "Rex" in turns[2].text
    for before, after in pairwise(turns):
        assert after.usage.cached_tokens >= before.usage.prompt_tokens + before.usage.completion_tokens - 1


def test_a_turn_cut_by_length_is_continued_on_its_tokens(client: StickyClient) -> None:
    with client.session() as session:
        first = session.invoke("Tell me about the sea.", temperature=0, max_new_tokens=5)
        second = session.invoke("Go on.", temperature=0, max_new_tokens=5)
    assert first.finish_reason == "length"
    assert second.usage.cached_tokens >= first.usage.prompt_tokens + first.usage.completion_tokens - 1


def test_a_context_is_computed_when_the_session_opens(client: StickyClient) -> None:
    with client.session(system="Always be kind. " * 40) as session:
        usage = session.invoke("Hello", max_new_tokens=4).usage
    assert usage.cached_tokens > 0.8 * usage.prompt_tokens


def test_a_replayed_transcript_gives_the_same_next_turn(client: StickyClient) -> None:
    with client.session(system=SYSTEM) as session:
        for question in QUESTIONS[:2]:
            session.invoke(question, temperature=0)
        transcript = session.messages
        original = session.invoke(QUESTIONS[2], temperature=0).text
    with client.session(messages=transcript) as session:
        assert session.invoke(QUESTIONS[2], temperature=0).text == original


def test_a_stream_says_the_same_as_a_whole_answer(client: StickyClient) -> None:
    with client.session() as one, client.session() as other:
        whole = one.invoke("What is the capital of France?", temperature=0)
        with other.stream("What is the capital of France?", temperature=0) as stream:
            pieces = list(stream)
    assert "".join(pieces) == stream.text == whole.text
    assert len(pieces) > 1
    assert stream.finish_reason == whole.finish_reason
    assert isinstance(stream.usage, Usage)
    assert stream.usage.completion_tokens == whole.usage.completion_tokens


def test_messages_in_a_session_are_openai_chat(client: StickyClient) -> None:
    with client.session(system=SYSTEM) as session:
        session.invoke([{"role": "user", "content": QUESTIONS[0]}], temperature=0)
        with session.stream([{"role": "user", "content": QUESTIONS[2]}], temperature=0) as stream:
            list(stream)
        assert "Rex" in stream.text
        assert stream.usage is not None
        assert stream.usage.cached_tokens > 0
        assert session.turn == 2


def test_a_whole_conversation_that_is_resent_reuses_what_it_shares(client: StickyClient) -> None:
    with client.session() as session:
        first = session.invoke("My dog is called Rex.", temperature=0)
        session.invoke("Hello", temperature=0, max_new_tokens=5)
        edited = [*session.messages[:2], {"role": "user", "content": "What is my dog called?"}]
        again = session.invoke(edited, temperature=0, history="full")
        assert session.turn == 2
        assert again.usage.cached_tokens >= first.usage.prompt_tokens + first.usage.completion_tokens - 1


@pytest.mark.parametrize("shape", ["inputs", "messages"])
def test_an_answer_goes_on_after_its_beginning(endpoint: Endpoint, shape: str) -> None:
    ask: dict[str, Any] = {"inputs": QUESTIONS[0], "parameters": {"temperature": 0}}
    if shape == "messages":
        ask = {"messages": [{"role": "user", "content": QUESTIONS[0]}], "temperature": 0}
    with endpoint.client.session(system=SYSTEM) as session:
        whole = session.invoke(QUESTIONS[0], temperature=0).text
    prefix = whole[: whole.index(" ", len(whole) // 3)]
    begun = json.dumps({**ask, "answerPrefix": prefix}).encode()
    with endpoint.client.session(system=SYSTEM) as session:
        answer = sent(endpoint, begun, session.id)
        assert prefix + text_of(answer) == whole
        after = sent(endpoint, json.dumps({"inputs": QUESTIONS[2]}).encode(), session.id)
    assert after["session"]["turn"] == 2
    assert after["generation"]["meta_info"]["cached_tokens"] >= answer["session"]["context_tokens"] - 1


@pytest.mark.parametrize("shape", ["inputs", "messages"])
def test_a_turn_that_is_not_next_is_refused_and_changes_nothing(endpoint: Endpoint, shape: str) -> None:
    ask = {"inputs": "Hello"} if shape == "inputs" else {"messages": [{"role": "user", "content": "Hello"}]}
    with endpoint.client.session(system=SYSTEM) as session:
        session.invoke(QUESTIONS[0], temperature=0)
        for numbers in ({"turn": 1}, {"turn": 3}, {"turn": 4, "rewind": 3}):
            with pytest.raises(ClientError) as problem:
                sent(endpoint, json.dumps({**ask, **numbers}).encode(), session.id)
            error = json.loads(problem.value.response["OriginalMessage"])["error"]
            assert (problem.value.response["OriginalStatusCode"], error["code"]) == (409, "session_conflict")
            assert f"turn {numbers['turn']} " in error["message"]
            assert "turn 2" in error["message"]
        answer = sent(endpoint, json.dumps({**ask, "turn": 2}).encode(), session.id)
        assert answer["session"]["turn"] == 2
        again = sent(endpoint, json.dumps({**ask, "turn": 2, "rewind": 1}).encode(), session.id)
        assert again["session"]["turn"] == 2


def sent(endpoint: Endpoint, body: bytes, session: str) -> dict[str, Any]:
    response = endpoint.runtime.invoke_endpoint(EndpointName=endpoint.name, Body=body, SessionId=session)
    answer: dict[str, Any] = json.loads(response["Body"].read())
    return answer


def text_of(answer: dict[str, Any]) -> str:
    text: str = answer["generation"]["text"] if "generation" in answer else answer["choices"][0]["message"]["content"]
    return text


def test_without_a_session(client: StickyClient) -> None:
    assert client.invoke("The capital of France is", max_new_tokens=4, temperature=0).text
    assert client.invoke([{"role": "user", "content": "Hi"}], max_tokens=4).text
    assert list(client.stream("The capital of France is", max_new_tokens=4))


def test_sessions_at_once_do_not_mix(client: StickyClient) -> None:
    def converse(number: int) -> str:
        with client.session(system=SYSTEM) as session:
            session.invoke(f"Remember this number: {number}.", temperature=0)
            return session.invoke("Which number did I ask you to remember?", temperature=0).text

    numbers = [4711, 1234, 9876, 5555]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(converse, numbers))
    for number, answer in zip(numbers, answers, strict=True):
        assert not any(str(other) in answer for other in numbers if other != number)


def test_a_session_id_can_be_proposed(client: StickyClient) -> None:
    with client.session(session_id="a-proposed-id") as session:
        assert session.id == "a-proposed-id"


def test_a_closed_session_is_gone(endpoint: Endpoint) -> None:
    with endpoint.client.session() as session:
        session_id = session.id
    with pytest.raises(endpoint.runtime.exceptions.ClientError):
        endpoint.runtime.invoke_endpoint(
            EndpointName=endpoint.name, SessionId=session_id, Body=json.dumps({"inputs": "still there?"})
        )


def test_the_samples_script_runs_unchanged_and_remembers(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boto3.client", lambda *_args, **_more: endpoint.runtime)
    builder = StatefulSMEDPBuilder(endpoint.name)
    session = "sample-session-1"
    builder.start_session(session)
    params = {"temperature": 0, "max_new_token": 64, "do_sample": False}
    for question in QUESTIONS:
        response = builder.invoke(question, params, session)
        text = json.loads(response["Body"].read())["generation"]["text"]
    assert "Rex" in text
    assert "Rex" in "".join(builder.invoke_stream(QUESTIONS[2], params, session))
    assert json.loads(builder.invoke("Bye.", extSessID=session)["Body"].read())["generation"]["text"]
    builder.end_session(session)
    with pytest.raises(endpoint.runtime.exceptions.ClientError):
        builder.invoke("Hello?", params, session)
