import pytest

from container.config import ContainerConfig
from container.engine import Message
from container.engine_echo import EchoEngine, EchoTokenizer
from container.transcript import ChatTemplate, Transcript

END = "<|im_end|>"


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


@pytest.fixture
def tokenizer() -> EchoTokenizer:
    return EchoEngine(ContainerConfig(engine="echo")).tokenizer


@pytest.fixture
def template(tokenizer: EchoTokenizer) -> ChatTemplate:
    return ChatTemplate(tokenizer)


def take_turn(transcript: Transcript, tokenizer: EchoTokenizer, question: str, answer: str, end: str = END) -> None:
    prompt = transcript.prepare([user(question)])
    transcript.commit(prompt, tokenizer.encode(answer + end), assistant(answer))


@pytest.mark.parametrize("end", [END, ""], ids=["the model ended its turn", "cut by length"])
def test_a_prompt_continues_the_ids_exactly_as_the_template_would(
    template: ChatTemplate, tokenizer: EchoTokenizer, end: str
) -> None:
    transcript = Transcript(template, [{"role": "system", "content": "be kind"}])
    take_turn(transcript, tokenizer, "one", "first", end)
    take_turn(transcript, tokenizer, "two", "second", end)
    before = transcript.ids
    prompt = transcript.prepare([user("three")])
    whole = [
        {"role": "system", "content": "be kind"},
        user("one"), assistant("first"), user("two"), assistant("second"), user("three"),
    ]  # fmt: skip
    assert prompt.ids[: len(before)] == before
    assert decode(prompt.ids) == decode(template.full(whole))
    assert not prompt.rerendered


def test_a_context_is_what_the_first_prompt_starts_with(template: ChatTemplate) -> None:
    transcript = Transcript(template, [{"role": "system", "content": "be kind"}])
    context = transcript.ids
    assert len(context) > 4
    assert transcript.prepare([user("hi")]).ids[: len(context)] == context


def test_preparing_changes_nothing(template: ChatTemplate, tokenizer: EchoTokenizer) -> None:
    transcript = Transcript(template)
    take_turn(transcript, tokenizer, "one", "first")
    before = transcript.ids[:], transcript.turns, transcript.messages
    transcript.prepare([user("never sent")], keep_turns=0)
    assert (transcript.ids, transcript.turns, transcript.messages) == before


def test_rewind_keeps_the_first_turns(template: ChatTemplate, tokenizer: EchoTokenizer) -> None:
    transcript = Transcript(template)
    take_turn(transcript, tokenizer, "one", "first")
    kept = transcript.ids[:]
    take_turn(transcript, tokenizer, "two", "second")
    prompt = transcript.prepare([user("again")], keep_turns=1)
    assert prompt.ids[: len(kept)] == kept
    transcript.commit(prompt, tokenizer.encode("other" + END), assistant("other"))
    assert transcript.turns == 2
    assert transcript.messages == [user("one"), assistant("first"), user("again"), assistant("other")]


def test_a_whole_conversation_keeps_the_turns_it_shares(template: ChatTemplate, tokenizer: EchoTokenizer) -> None:
    transcript = Transcript(template)
    take_turn(transcript, tokenizer, "one", "first")
    kept = transcript.ids[:]
    take_turn(transcript, tokenizer, "two", "second")
    conversation = [user("one"), assistant("first"), user("edited")]
    prompt = transcript.replace(conversation)
    assert prompt.kept_turns == 1
    assert prompt.ids[: len(kept)] == kept
    transcript.commit(prompt, tokenizer.encode("new" + END), assistant("new"))
    assert transcript.messages == [*conversation, assistant("new")]


def test_a_whole_conversation_that_shares_nothing_replaces_all(
    template: ChatTemplate, tokenizer: EchoTokenizer
) -> None:
    transcript = Transcript(template, [{"role": "system", "content": "be kind"}])
    take_turn(transcript, tokenizer, "one", "first")
    conversation = [{"role": "system", "content": "be rude"}, user("one")]
    prompt = transcript.replace(conversation)
    assert prompt.ids == template.full(conversation)
    transcript.commit(prompt, tokenizer.encode("new" + END), assistant("new"))
    assert transcript.messages == [*conversation, assistant("new")]


class ForgetsThinking(EchoTokenizer):
    """A template that drops the thinking of earlier answers, as reasoning models' do."""

    def render(self, messages, *, add_generation_prompt, tools=None):  # type: ignore[no-untyped-def]
        last = len(messages) - 1
        cleaned = [
            {**each, "content": each["content"].rpartition("</think>\n\n")[2] if place != last else each["content"]}
            for place, each in enumerate(messages)
        ]
        return super().render(cleaned, add_generation_prompt=add_generation_prompt, tools=tools)


def test_a_template_that_rewrites_the_past_is_rendered_anew() -> None:
    tokenizer = ForgetsThinking()
    template = ChatTemplate(tokenizer)
    transcript = Transcript(template)
    thought = "<think>\nhm\n</think>\n\nfirst"
    take_turn(transcript, tokenizer, "one", thought)
    prompt = transcript.prepare([user("two")])
    assert prompt.rerendered
    assert prompt.ids == template.full([user("one"), assistant(thought), user("two")])
    assert "hm" not in decode(prompt.ids)


def decode(ids) -> str:  # type: ignore[no-untyped-def]
    """Ids as text in which the markers stay visible: two tokenizations of one text are equal here."""
    special = {0xFF000001: b"<|im_start|>", 0xFF000002: b"<|im_end|>"}
    return b"".join(special.get(each) or each.to_bytes(4, "little").replace(b"\0", b"") for each in ids).decode()


def test_what_a_message_holds_keeps_its_order(template: ChatTemplate) -> None:
    """Templates write a tool's arguments as they stand: another order is another prompt."""
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": {"to": "Rome", "from": "Paris"}}}
    message = {"tool_calls": [call], "role": "assistant"}
    (kept,) = Transcript(template, [message]).messages
    assert str(kept["tool_calls"]) == str(message["tool_calls"])
