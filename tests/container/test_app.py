"""The wire contract on the container itself; what goes through SageMaker's wire is in tests/contract."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sagemaker_sticky_protocol import MAX_BODY_BYTES, SESSION_ID_HEADER

from .conftest import Container, running_container, wait_until

GREETING = {"requestType": "NEW_SESSION"}


def test_open_turn_close(echo: Container) -> None:
    opened = echo.invoke({**GREETING, "extSessionID": "walk-1"}, "NEW_SESSION")
    session = opened.json["session"]
    assert opened.headers[SESSION_ID_HEADER] == f"walk-1; Expires={session['expires_at']}"
    assert (session["turn"], session["context_tokens"], session["served_by"]) == (0, 0, "i-0")

    first = echo.invoke({"requestType": "SESSION", "inputs": "My dog is called Rex."}, "walk-1").json
    assert first["generation"]["text"] == "You said: My dog is called Rex."
    second = echo.invoke({"inputs": "What is my dog called?"}, "walk-1").json
    assert second["generation"]["text"] == "You said: What is my dog called? | At first: My dog is called Rex."
    usage = first["generation"]["meta_info"]
    assert second["generation"]["meta_info"]["cached_tokens"] >= usage["prompt_tokens"] + usage["completion_tokens"] - 1
    assert second["session"]["turn"] == 2

    closed = echo.invoke({"requestType": "CLOSE"}, "walk-1")
    assert closed.headers["X-Amzn-SageMaker-Closed-Session-Id"] == "walk-1"
    assert echo.invoke({"inputs": "still there?"}, "walk-1").code == "session_not_found"


def test_a_stream_says_the_same_as_a_whole_answer(echo: Container) -> None:
    session = echo.open()
    events = echo.invoke({"inputs": "Grüße 🐕!", "stream": True}, session).events
    assert "".join(each["generation"]["text"] for each in events) == "You said: Grüße 🐕!"
    assert all("session" not in each for each in events[:-1])
    assert events[-1]["session"]["turn"] == 1
    assert events[-1]["generation"]["meta_info"]["finish_reason"]["type"] == "stop"


def test_the_samples_request_works(echo: Container) -> None:
    session = echo.open(extSessionID="sample-1")
    body = {
        "inputs": "hello",
        "sampling_params": {"temperature": 0.9, "max_new_token": 2, "do_sample": True},
        "extSessionID": session,
        "requestType": "SESSION",
    }
    meta = echo.invoke(body, session).json["generation"]["meta_info"]
    assert meta["completion_tokens"] == 2
    assert meta["finish_reason"]["type"] == "length"
    closed = echo.invoke({"extSessionID": session, "requestType": "CLOSE_SESSION"}, session)
    assert closed.status == 200


def test_requests_without_a_session(echo: Container) -> None:
    assert echo.invoke({"inputs": "raw"}).json["generation"]["text"] == "You said: raw"
    chat = echo.invoke({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}).json
    assert chat["object"] == "chat.completion"
    assert chat["choices"][0]["message"]["content"] == "You said: hi"
    assert chat["usage"]["total_tokens"] == chat["usage"]["prompt_tokens"] + chat["usage"]["completion_tokens"]
    assert "session" not in chat
    assert echo.invoke({"prompt": "raw"}).json["choices"][0]["text"] == "You said: raw"


def test_a_turn_of_messages_is_a_chat_completion_with_the_session_beside_it(echo: Container) -> None:
    session = echo.open(messages=[{"role": "system", "content": "be kind"}])
    answer = echo.invoke({"messages": [{"role": "user", "content": "hi"}]}, session).json
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "You said: hi"}
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    events = echo.invoke({"messages": [{"role": "user", "content": "and?"}], "stream": True}, session).events
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in events if each["choices"])
    assert text == "You said: and? | At first: hi"
    assert events[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] > answer["usage"]["prompt_tokens"]
    assert events[-1]["session"]["turn"] == 2


def test_a_session_can_be_regenerated_edited_and_resent(echo: Container) -> None:
    session = echo.open()
    echo.invoke({"inputs": "one"}, session)
    echo.invoke({"inputs": "two"}, session)
    again = echo.invoke({"inputs": "two, once more", "rewind": 1}, session).json
    assert again["session"]["turn"] == 2
    assert again["generation"]["meta_info"]["cached_tokens"] > 0
    conversation = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "You said: one"},
        {"role": "user", "content": "resent"},
    ]
    full = echo.invoke({"messages": conversation, "history": "full"}, session).json
    assert full["session"]["turn"] == 2
    assert full["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert full["choices"][0]["message"]["content"] == "You said: resent | At first: one"


def test_a_turn_whose_number_is_not_next_is_a_conflict_before_anything_is_generated(
    start: Callable[..., Container],
) -> None:
    container = start(STICKY_ECHO_TOKEN_S="1")
    session = container.open()
    long = "a" * 300  # 75 s, were it answered
    told = {"messages": [{"role": "user", "content": long}]}
    for ask in ({"inputs": long}, told, {**told, "history": "full"}, {"inputs": long, "stream": True}):
        refused = container.invoke({**ask, "turn": 2}, session)
        assert (refused.status, refused.code) == (409, "session_conflict")
        assert refused.message == f"'turn' says that this is turn 2 of session {session!r}, where it would be turn 1"
    assert container.invoke({"inputs": "hi", "turn": 1, "parameters": {"max_new_tokens": 1}}, session).status == 200


def test_the_number_of_a_turn_counts_what_stays_before_it(echo: Container) -> None:
    session = echo.open(messages=[{"role": "system", "content": "be kind"}])
    one, two = ([{"role": "user", "content": word}] for word in ("one", "two"))
    assert echo.invoke({"inputs": "one", "turn": 1}, session).json["session"]["turn"] == 1
    assert echo.invoke({"messages": two, "turn": 2}, session).json["session"]["turn"] == 2
    assert echo.invoke({"inputs": "two, again", "rewind": 1, "turn": 2}, session).json["session"]["turn"] == 2
    beyond = echo.invoke({"inputs": "four", "rewind": 3, "turn": 4}, session)
    assert (beyond.code, "turn 4" in beyond.message, "turn 3" in beyond.message) == ("session_conflict", True, True)
    said = {"role": "assistant", "content": "You said: one"}
    whole = [{"role": "system", "content": "be kind"}, *one, said, *two]
    resent = {"messages": whole, "history": "full"}
    assert echo.invoke({**resent, "turn": 3}, session).code == "session_conflict"
    assert echo.invoke({**resent, "turn": 2}, session).json["session"]["turn"] == 2


def test_of_two_turns_at_once_with_one_number_one_is_answered(start: Callable[..., Container]) -> None:
    container = start(STICKY_ECHO_TOKEN_S="0.05")
    session = container.open()
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda word: container.invoke({"inputs": word, "turn": 1}, session), "ab"))
    assert sorted(each.status for each in answers) == [200, 409]
    assert container.invoke({"inputs": "c", "turn": 2}, session).json["session"]["turn"] == 2


@pytest.mark.parametrize(
    ("session", "body", "message"),
    [
        (None, b"{", "should be a JSON object, got 1 bytes that are not JSON"),
        (None, b"[1]", "should be a JSON object, got [1]"),
        (None, b"\xff\xfe", "not JSON"),
        (None, b'{"inputs": "\\ud800"}', "not JSON"),
        (None, {}, "exactly one of 'inputs', 'messages', 'prompt', got none"),
        (None, {"input": "x"}, "did you mean 'inputs'?"),
        (None, {"inputs": "x", "prompt": "y"}, "got 'inputs' and 'prompt'"),
        (None, {"inputs": ""}, "'inputs' should be a string of at least one character, got ''"),
        (None, {"inputs": 7}, "'inputs' should be a string of at least one character, got 7"),
        (None, {"inputs": "x", "requestType": "SESSION"}, "needs the header X-Amzn-SageMaker-Session-Id"),
        (None, {"inputs": "x", "requestType": "SESION"}, "got 'SESION' (did you mean 'SESSION'?)"),
        (None, {"inputs": "x", "requestType": 5}, "'requestType' should be one of"),
        (None, {"inputs": "x", "temperature": 0}, "'temperature' belongs inside 'parameters'"),
        (None, {"inputs": "x", "strem": True}, "'strem' is not a known field here (did you mean 'stream'?)"),
        (None, {"inputs": "x", "stream": "yes"}, "'stream' should be true or false, got 'yes'"),
        (None, {"inputs": "x", "parameters": []}, "'parameters' should be an object, got []"),
        (None, {"inputs": "x", "parameters": {"temprature": 1}}, "did you mean 'temperature'?"),
        (None, {"inputs": "x", "parameters": {"temperature": -1}}, "should be a number from 0, got -1"),
        (None, {"inputs": "x", "parameters": {"max_new_tokens": True}}, "should be a whole number from 1, got True"),
        (None, {"inputs": "x", "parameters": {}, "sampling_params": {}}, "mean the same"),
        (None, {"messages": []}, "'messages' should be a list of at least one message, got []"),
        (None, {"messages": [{"role": "usr", "content": "x"}]}, "'messages[0].role' should be one of"),
        (None, {"messages": [{"role": "user"}]}, "'messages[0].content' should be a string or a list of parts"),
        ("NEW_SESSION", {"requestType": "SESSION"}, "should be 'NEW_SESSION' with the header"),
        ("NEW_SESSION", {"requestType": "NEW_SESSION", "extSessionID": "a_b"}, "'extSessionID' should be 1 to 256"),
        ("NEW_SESSION", {"requestType": "NEW_SESSION", "extSessionId": "a"}, "did you mean 'extSessionID'?"),
        ("bad_id", {"inputs": "x"}, "should be NEW_SESSION or a session id, got 'bad_id'"),
        ("some-id", {"requestType": "NEW_SESSION"}, "needs the header X-Amzn-SageMaker-Session-Id: NEW_SESSION"),
        ("some-id", {"inputs": "x", "extSessionID": "other"}, "should be the session of the header, 'some-id'"),
        ("some-id", {"prompt": "x"}, "'prompt' is for requests without a session"),
        ("some-id", {"inputs": "x", "history": "ful"}, "did you mean 'full'?"),
        ("some-id", {"inputs": "x", "rewind": -1}, "'rewind' should be a whole number from 0"),
        ("some-id", {"inputs": "x", "turn": 0}, "'turn' should be a whole number from 1, got 0"),
        ("some-id", {"inputs": "x", "turn": True}, "'turn' should be a whole number from 1, got True"),
        ("some-id", {"inputs": "x", "turn": 1.0}, "'turn' should be a whole number from 1, got 1.0"),
        ("some-id", {"inputs": "x", "turn": 3, "rewind": 1}, "'turn' should be 2 after 'rewind' 1, got 3"),
        (None, {"inputs": "x", "turn": 1}, "'turn' is not a known field here"),
        (None, {"messages": [{"role": "user", "content": "x"}], "turn": 1}, "'turn' is not a known field here"),
        ("some-id", {"inputs": "x", "answerPrefix": 7}, "'answerPrefix' should be a string, got 7"),
        (None, {"prompt": "x", "answerPrefix": "a"}, "put it at the end of 'prompt'"),
        (
            "some-id",
            {"inputs": "x", "answerPrefix": "a", "parameters": {"regex": "a+"}},
            "'answerPrefix' does not go with 'regex'",
        ),
        (
            None,
            {"messages": [{"role": "user", "content": "x"}], "answerPrefix": "a", "tool_choice": "required"},
            "'answerPrefix' goes with 'tool_choice' 'none' or 'auto' only",
        ),
    ],
)
def test_bad_input_is_named(echo: Container, session: str | None, body: object, message: str) -> None:
    answer = echo.invoke(body, session)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert message in answer.message
    assert "Traceback" not in answer.message


@pytest.mark.parametrize("shape", ["inputs", "messages"])
def test_the_beginning_of_an_answer_counts_as_part_of_it(echo: Container, shape: str) -> None:
    session, said = echo.open(), [{"role": "user", "content": "hello there"}]
    ask: dict[str, object] = {"inputs": "hello there", "parameters": {"max_new_tokens": 4}}
    if shape == "messages":
        ask = {"messages": said, "max_tokens": 4}
    answer = echo.invoke({**ask, "answerPrefix": "You said"}, session).json
    text = answer["generation"]["text"] if shape == "inputs" else answer["choices"][0]["message"]["content"]
    assert text == ": hello "  # two tokens of four: the first two are given
    resent = [*said, {"role": "assistant", "content": "You said: hello "}, {"role": "user", "content": "and now?"}]
    # Only what the session holds is cached here.
    usage = echo.invoke({"messages": resent, "history": "full"}, session).json["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= answer["session"]["context_tokens"] - 1


def test_a_prompt_over_the_window_says_by_how_much_and_harms_nothing(echo: Container) -> None:
    session = echo.open()
    echo.invoke({"inputs": "My dog is called Rex."}, session)
    answer = echo.invoke({"inputs": "x" * 4 * 8192}, session)
    assert answer.code == "invalid_request"
    assert "more than fit the context window of 8192" in answer.message
    assert echo.invoke({"inputs": "Who?"}, session).json["generation"]["text"].endswith("My dog is called Rex.")


def test_a_body_over_the_limit_is_refused(echo: Container) -> None:
    answer = echo.invoke({"inputs": "x" * MAX_BODY_BYTES})
    assert (answer.status, answer.code) == (413, "request_too_large")
    assert str(MAX_BODY_BYTES) in answer.message


def test_unknown_paths_and_methods_are_no_server_errors(echo: Container) -> None:
    assert echo.request("GET", "/nowhere").status < 500
    assert echo.request("GET", "/invocations").status < 500


def test_an_expired_session_is_told_so(start: Callable[..., Container]) -> None:
    container = start(SES_TTL_MIN="0.01")
    session = container.open()
    wait_until(lambda: container.invoke({"inputs": "x"}, session).status != 200)
    assert container.invoke({"inputs": "x"}, session).code == "session_expired"
    assert container.open(extSessionID=session) == session


def test_a_caller_who_leaves_ends_the_generation_and_the_turn_never_was(start: Callable[..., Container]) -> None:
    container = start(STICKY_ECHO_TOKEN_S="0.2")
    session = container.open()
    connection = container.connect()
    connection.request(
        "POST", "/invocations", json.dumps({"inputs": "a" * 400, "stream": True}), {SESSION_ID_HEADER: session}
    )
    response = connection.getresponse()
    assert response.readline().startswith(b"data: ")
    response.close()
    connection.close()
    # Were the turn still running, this one would wait 20 s for it.
    answer = container.invoke({"inputs": "b", "parameters": {"max_new_tokens": 3}}, session).json
    assert answer["session"]["turn"] == 1


def test_a_turn_that_runs_out_of_time_never_was(start: Callable[..., Container]) -> None:
    container = start(STICKY_ECHO_TOKEN_S="0.2", TURN_TIMEOUT_S="1")
    session = container.open()
    late = container.invoke({"inputs": "a" * 100}, session)
    assert (late.status, late.code) == (503, "engine_unavailable")
    assert "not complete after 1 s" in late.message
    begun = container.invoke({"inputs": "a" * 100, "stream": True}, session)
    *chunks, error = [line for line in begun.body.decode().split("\n") if line]
    assert len(chunks) > 1
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "engine_unavailable"
    after = container.invoke({"inputs": "b", "parameters": {"max_new_tokens": 2}}, session).json
    assert after["session"]["turn"] == 1


def test_too_many_waiting_turns_are_told_so(start: Callable[..., Container]) -> None:
    container = start(STICKY_ECHO_TOKEN_S="0.1", SESSION_QUEUE="0")
    session = container.open()
    connection = container.connect()
    body = json.dumps({"inputs": "a" * 80, "stream": True})
    connection.request("POST", "/invocations", body, {SESSION_ID_HEADER: session})
    response = connection.getresponse()
    response.readline()
    refused = container.invoke({"inputs": "b"}, session)
    assert (refused.status, refused.code) == (409, "session_busy")
    assert response.read().endswith(b"data: [DONE]\n\n")
    connection.close()


def test_an_idle_session_expires_without_anyone_calling(start: Callable[..., Container]) -> None:
    container = start(SES_TTL_MIN="0.01")
    container.open()
    expired = re.compile(r'^sticky_sessions_total\{event="expired"\} 1.0$', re.M)
    wait_until(lambda: expired.search(container.request("GET", "/metrics").body.decode()) is not None, seconds=5)


def test_a_shorter_life_can_be_asked_for(echo: Container) -> None:
    short = echo.invoke({**GREETING, "ttlSeconds": 60}, "NEW_SESSION").json["session"]["expires_at"]
    longest = echo.invoke({**GREETING, "ttlSeconds": 10**9}, "NEW_SESSION").json["session"]["expires_at"]
    default = echo.invoke(GREETING, "NEW_SESSION").json["session"]["expires_at"]
    assert short < default
    assert longest <= default
    refused = echo.invoke({**GREETING, "ttlSeconds": 0}, "NEW_SESSION")
    assert "'ttlSeconds' should be a number above 0, got 0" in refused.message


def test_sigterm_lets_the_running_stream_end_whole(start: Callable[..., Container]) -> None:
    container = start(STICKY_ECHO_TOKEN_S="0.1")
    session = container.open()
    with ThreadPoolExecutor() as pool:
        connection = container.connect()
        connection.request(
            "POST", "/invocations", json.dumps({"inputs": "a" * 80, "stream": True}), {SESSION_ID_HEADER: session}
        )
        response = connection.getresponse()
        response.readline()
        rest = pool.submit(response.read)
        container.process.send_signal(signal.SIGTERM)
        wait_until(lambda: container.ping() == 503)
        refused = container.invoke(GREETING, "NEW_SESSION")
        assert (refused.status, refused.code) == (503, "draining")
        assert rest.result(20).endswith(b"data: [DONE]\n\n")
        connection.close()
    assert container.process.wait(20) == 0


def test_without_a_disk_for_the_journal_it_serves_all_the_same(start: Callable[..., Container]) -> None:
    container = start(SESSION_JOURNAL_DIR="/dev/null/sessions")
    session = container.open()
    assert container.invoke({"inputs": "hello"}, session).status == 200
    assert "no journal" in container.log.read_text()


def test_bad_settings_end_the_start_with_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(AssertionError), running_container(log, {"STICKY_ENGINE": "echo", "MAX_SESSIONS": "many"}):
        pass
    assert log.read_text() == "configuration: 'MAX_SESSIONS' should be a whole number, got 'many'\n"
