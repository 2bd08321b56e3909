from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from sagemaker_sticky import cli
from sagemaker_sticky_protocol import ErrorCode

from tests.client.house import House
from tests.client.wire import Request, Wire, container_error

CHAT = ["chat", "--endpoint-name", "house"]


def chat(monkeypatch: pytest.MonkeyPatch, *lines: str, options: tuple[str, ...] = ()) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return cli.main([*CHAT, *options])


def records(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_lines_are_answered_with_a_status_line(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat(monkeypatch, "hello", "", "and you?", "/usage", "/quit", "not read") == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("session s-0; /help")
    assert lines[1] == lines[3] == "aaa"
    assert lines[2].startswith("i-1  0% cached  first token 0.")
    assert lines[4].startswith("i-1  50% cached  first token ")
    assert lines[5].startswith("2 turns  prompt 21 tokens, 8 of them cached  completion 6 tokens")
    assert len(lines) == 6
    assert house.tokens == {}, "the session is closed"


def test_json_is_an_object_a_line(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat(monkeypatch, "hello", "/usage", options=("--json",)) == 0

    session, turn, usage = records(capsys)
    assert (session["event"], session["id"]) == ("session", "s-0")
    assert (turn["event"], turn["turn"], turn["text"], turn["reopened"]) == ("turn", 1, "aaa", 0)
    assert (usage["event"], usage["usage"]["completion_tokens"]) == ("usage", 3)


def test_options_go_with_the_session_and_every_turn(house: House, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--system", "Be brief.", "--ttl", "60", "--max-new-tokens", "5", "--temperature", "0")
    assert chat(monkeypatch, "hello", options=options) == 0

    opened, said, _closed = (request.body for request in wire.requests)
    assert (opened["messages"], opened["ttlSeconds"]) == ([{"role": "system", "content": "Be brief."}], 60)
    assert said["parameters"] == {"max_new_tokens": 5, "temperature": 0}


def test_a_rewind_forgets_the_last_turn_or_all_after_some(
    house: House, wire: Wire, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat(monkeypatch, "one", "two", "three", "/rewind", "four", options=("--json",)) == 0
    assert wire.requests[4].body["rewind"] == 2
    assert [each["turn"] for each in records(capsys) if each["event"] == "rewind"] == [2]

    assert chat(monkeypatch, "one", "two", "/rewind 0", "three", options=("--json",)) == 0
    assert wire.requests[-2].body["rewind"] == 0


def test_new_begins_a_new_session(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat(monkeypatch, "one", "/new", "two", options=("--json",)) == 0

    told = records(capsys)
    assert [each["event"] for each in told] == ["session", "turn", "session", "turn"]
    assert (told[3]["turn"], house.tokens) == (1, {})


@pytest.mark.parametrize("line", ["/nothing", "/rewind two", "/rewind", "/rewind 9"])
def test_a_wrong_command_is_told_and_the_chat_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert chat(monkeypatch, line, "hello", options=("--json",)) == 1

    assert [each["event"] for each in records(capsys)] == ["session", "error", "turn"]


def test_a_failing_turn_is_told_and_the_chat_goes_on(
    house: House, wire: Wire, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_once(request: Request) -> Any:
        if request.streams and request.body["inputs"] == "break":
            return container_error(ErrorCode.INTERNAL, "broke")
        return house(request)

    wire.handle = fail_once
    assert chat(monkeypatch, "break", "hello") == 1

    out = capsys.readouterr().out
    assert "EndpointFailed: broke\n" in out
    assert "\naaa\n" in out


def test_a_chat_that_cannot_begin_is_exit_status_1(
    wire: Wire, credentials: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wire.replies.append(container_error(ErrorCode.TOO_MANY_SESSIONS, "full"))

    assert chat(monkeypatch, "hello") == 1
    assert capsys.readouterr().err == "sticky: full\n"


def test_a_person_types_until_the_end_of_input(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard("hello\n/help\n/nothing\n"))

    assert cli.main(CHAT) == 0

    out = capsys.readouterr().out
    assert "> aaa\n" in out
    assert "/rewind [K]" in out
