from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sagemaker_sticky import InvalidRequest, InvalidResponse, SessionClosed, Turn, Usage
from sagemaker_sticky._core.conversation import Conversation
from sagemaker_sticky_protocol import SessionInfo, format_time

from tests.client.wire import (
    session,
)

NOW = 1_800_000_000.0
CONTEXT = [{"role": "system", "content": "Be brief."}]


def told(session_id: str, *, turn: int, expires_in: float = 1800) -> dict[str, Any]:
    return {**session(session_id, turn=turn), "expires_at": format_time(NOW + expires_in)}


def turn(number: int, text: str = "yes", session_id: str = "s-1") -> Turn:
    return Turn(
        text=text,
        usage=Usage(1, 1, 1),
        finish_reason="stop",
        session=SessionInfo.from_dict(told(session_id, turn=number)),
        message={"role": "assistant", "content": text},
        raw={},
    )


def talked(turns: int, conversation: Conversation | None = None) -> Conversation:
    conversation = conversation or Conversation(messages=CONTEXT, clock=lambda: NOW)
    conversation.opened(f"s-1; Expires={format_time(NOW + 1800)}", {})
    for number in range(1, turns + 1):
        conversation.answered(f"q{number}", {}, turn(number, f"a{number}"))
    return conversation


def asks(conversation: Conversation, content: Any = "and?", **parameters: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(conversation.say(content, parameters).body)
    return body


def said(conversation: Conversation) -> list[str]:
    return [message["content"] for message in conversation.messages]


def test_a_rewind_goes_with_the_next_turn() -> None:
    conversation = talked(3)

    conversation.rewind(1)

    assert (said(conversation), conversation.turn) == (["Be brief.", "q1", "a1"], 1)
    assert asks(conversation)["rewind"] == 1
    conversation.answered("and?", {}, turn(2))
    assert "rewind" not in asks(conversation)
    assert (conversation.turn, conversation.usage) == (2, Usage(4, 4, 4))


def test_a_rewind_to_the_beginning_keeps_the_context() -> None:
    conversation = talked(2)

    conversation.rewind(0)

    assert (said(conversation), asks(conversation)["rewind"]) == (["Be brief."], 0)


@pytest.mark.parametrize("turns", [-1, 3])
def test_a_rewind_to_nowhere_is_refused(turns: int) -> None:
    with pytest.raises(InvalidRequest, match="0 to 2 turns"):
        talked(2).rewind(turns)


def test_a_closed_session_does_not_rewind() -> None:
    conversation = talked(1)
    conversation.close()

    with pytest.raises(SessionClosed):
        conversation.rewind(0)


def test_turns_go_on_counting_in_a_new_session() -> None:
    conversation = talked(2)

    conversation.opened("s-2", {"session": told("s-2", turn=0)})
    conversation.answered("q3", {}, turn(1, session_id="s-2"))

    assert (conversation.id, conversation.turn, conversation.reopened) == ("s-2", 3, 1)
    conversation.rewind(2)
    assert (asks(conversation)["rewind"], conversation.must_reopen) == (0, False)
    conversation.rewind(1)
    assert conversation.must_reopen, "the new session got both turns as messages: it cannot keep one of them"
    assert said(conversation) == ["Be brief.", "q1", "a1"]


def test_a_full_history_keeps_the_place_of_what_it_shares() -> None:
    conversation = talked(3)
    whole = [*conversation.messages[:3], {"role": "user", "content": "another"}]

    assert "rewind" not in asks(conversation, whole, history="full")
    conversation.answered(whole, {"history": "full"}, turn(2))

    assert said(conversation) == ["Be brief.", "q1", "a1", "another", "yes"]
    conversation.rewind(1)
    assert said(conversation) == ["Be brief.", "q1", "a1"]


def test_a_full_history_after_a_reopening_hides_where_earlier_turns_ended() -> None:
    conversation = talked(3)
    conversation.opened("s-2", {})
    whole = [{"role": "user", "content": "something else"}]
    conversation.answered(whole, {"history": "full"}, turn(1, session_id="s-2"))

    with pytest.raises(InvalidRequest, match="is not known"):
        conversation.rewind(2)


def test_a_turn_in_doubt_is_put_right_by_the_next_one() -> None:
    conversation = talked(2)

    conversation.in_doubt = True

    assert asks(conversation)["rewind"] == 2
    assert "rewind" not in asks(conversation, [{"role": "user", "content": "x"}], history="full")


@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_answer_from_another_past_is_not_taken_in(number: int) -> None:
    conversation = talked(2)
    before = said(conversation), conversation.turn, conversation.usage

    with pytest.raises(InvalidResponse, match=rf"is turn {number} of session s-1, where turn 3 was asked for"):
        conversation.answered("q3", {}, turn(number))

    assert (said(conversation), conversation.turn, conversation.usage) == before


def test_an_answer_of_no_session_is_not_taken_in() -> None:
    conversation = talked(2)

    with pytest.raises(InvalidResponse, match="not of session s-1"):
        conversation.answered("q3", {}, replace(turn(3), session=None))

    assert conversation.turn == 2


def test_a_turn_says_which_number_it_is_to_have() -> None:
    conversation = talked(0)
    assert asks(conversation)["turn"] == 1
    talked_more = talked(2)
    assert asks(talked_more)["turn"] == asks(talked_more, [{"role": "user", "content": "x"}])["turn"] == 3
    talked_more.rewind(1)
    assert (asks(talked_more)["rewind"], asks(talked_more)["turn"]) == (1, 2)
    talked_more.opened("s-2", {})
    assert asks(talked_more)["turn"] == 1, "the new session got the turn before as messages"


def test_a_whole_conversation_stands_for_itself_and_has_no_number() -> None:
    conversation = talked(2)

    assert "turn" not in asks(conversation, [{"role": "user", "content": "x"}], history="full")
    conversation.answered([{"role": "user", "content": "x"}], {"history": "full"}, turn(1))
    assert (conversation.turn, asks(conversation)["turn"]) == (1, 2)


def test_an_attached_session_learns_its_turn_with_its_first_answer() -> None:
    conversation = Conversation.attached("s-1", None)
    assert "turn" not in asks(conversation)

    conversation.answered("q8", {}, turn(8))

    assert asks(conversation)["turn"] == 9


def test_an_answer_whose_expiry_is_none_is_not_taken_in() -> None:
    conversation = Conversation.attached("s-1", None)
    answered = turn(8)
    assert answered.session is not None

    with pytest.raises(InvalidResponse, match="expiry"):
        conversation.answered("q8", {}, replace(answered, session=replace(answered.session, expires_at="soon")))

    assert (conversation.turn, conversation.messages) == (0, [])


def test_an_attached_session_that_was_reopened_knows_its_turn() -> None:
    conversation = Conversation.attached("s-1", CONTEXT)

    conversation.opened("s-2", {})

    assert asks(conversation)["turn"] == 1


def test_an_attached_session_never_rewinds_by_itself() -> None:
    conversation = Conversation.attached("s-1", None)

    conversation.in_doubt = True

    assert "rewind" not in asks(conversation), "how many turns it has is not known: all would be lost"
    conversation.answered("q8", {}, turn(8))
    conversation.in_doubt = True
    assert asks(conversation)["rewind"] == 8


def test_an_attached_session_rewinds_when_it_is_told_to() -> None:
    conversation = Conversation.attached("s-1", None)
    conversation.answered("q8", {}, turn(8))

    conversation.rewind(3)

    assert (said(conversation), asks(conversation)["rewind"], conversation.complete) == ([], 3, False)


def test_an_attached_session_checks_its_id() -> None:
    with pytest.raises(InvalidRequest, match="session_id"):
        Conversation.attached("a_b", None)


@pytest.mark.parametrize(
    ("life", "left", "margin", "near"),
    [(1800, 31, 30, False), (1800, 30, 30, True), (1800, -1, 30, True), (60, 16, 30, False), (60, 15, 30, True),
     (1800, 1, 0, False), (-100, -100, 30, False)],
)  # fmt: skip
def test_an_expiry_is_near(life: float, left: float, margin: float, near: bool) -> None:
    now = [NOW]
    conversation = Conversation(clock=lambda: now[0])
    conversation.opened("s-1", {"session": told("s-1", turn=0, expires_in=life)})

    now[0] += life - left

    assert conversation.is_near_expiry(margin) is near


def test_without_an_expiry_none_is_near() -> None:
    conversation = Conversation()
    conversation.opened("s-1", {})

    assert not conversation.is_near_expiry(1e9)
