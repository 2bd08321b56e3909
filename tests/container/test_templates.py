"""Real chat-template shapes, each on a small tokenizer: continuing the tokens gives what a full rendering gives.

The templates are written after those that ship with the models, reduced to what decides how turns follow each other.
"""

from __future__ import annotations

import pytest

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from container.engine import Message  # noqa: E402
from container.tokenizer import HuggingFaceTokenizer  # noqa: E402
from container.transcript import ChatTemplate, Transcript  # noqa: E402

CHATML = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nYou are helpful.<|im_end|>\n"
    "{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA_3 = (
    "<|begin_of_text|>{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
MISTRAL = (
    "<s>{% if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set rest = messages[1:] %}"
    "{% else %}{% set system = none %}{% set rest = messages %}{% endif %}{% for m in rest %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate user and assistant') }}{% endif %}"
    "{% if m.role == 'user' %}[INST] {% if loop.first and system is not none %}{{ system }}\n\n{% endif %}"
    "{{ m.content }} [/INST]{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
)
MISTRAL_LATE_SYSTEM = MISTRAL.replace("loop.first and system", "loop.last and system")
"""Some Mistral templates put the system prompt before the last user message: they rewrite the past."""
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}"
    "{{ m.content.split('</think>')[-1].lstrip('\n') }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKERS = (
    "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<s>", "</s>", "[INST]", "[/INST]",
)  # fmt: skip

APPENDING = {"chatml": (CHATML, "<|im_end|>"), "llama-3": (LLAMA_3, "<|eot_id|>"), "mistral": (MISTRAL, "</s>")}
REWRITING = {"thinking": (THINKING, "<|im_end|>"), "mistral, late system": (MISTRAL_LATE_SYSTEM, "</s>")}

SYSTEM: Message = {"role": "system", "content": "Be kind."}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def make(template: str) -> HuggingFaceTokenizer:
    """A byte-level tokenizer with the markers of every template as special tokens."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={symbol: number for number, symbol in enumerate(alphabet)}, merges=[])
    raw = tokenizers.Tokenizer(model)
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    raw.add_special_tokens([tokenizers.AddedToken(each, special=True) for each in MARKERS])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=raw)
    fast.chat_template = template
    return HuggingFaceTokenizer(fast)


def converse(
    tokenizer: HuggingFaceTokenizer, end: str, context: list[Message], answers: list[str], *, cut: bool = False
) -> tuple[Transcript, list[Message]]:
    """A transcript of turns as a model that writes ``answers`` makes it, and the same as messages."""
    transcript = Transcript(ChatTemplate(tokenizer), context)
    messages = list(context)
    for number, answer in enumerate(answers):
        question = user(f"question {number}?")
        transcript.commit(
            transcript.prepare([question]), tokenizer.encode(answer + ("" if cut else end)), assistant(answer)
        )
        messages += [question, assistant(answer)]
    return transcript, messages


@pytest.mark.parametrize("cut", [False, True], ids=["ended by the model", "cut by length"])
@pytest.mark.parametrize("context", [[], [SYSTEM]], ids=["no system", "system"])
@pytest.mark.parametrize("name", APPENDING)
def test_an_appending_template_is_continued_on_its_tokens(name: str, context: list[Message], cut: bool) -> None:
    template, end = APPENDING[name]
    tokenizer = make(template)
    # The template strips nothing here, so text and tokens must both agree.
    transcript, messages = converse(tokenizer, end, context, ["first", "second"], cut=cut)
    if name == "mistral":  # its template writes a space before an answer that a model writes itself
        transcript, messages = converse(tokenizer, end, context, [" first", " second"], cut=cut)
        messages = [{**each, "content": each["content"].lstrip()} for each in messages]
    before = transcript.ids[:]
    prompt = transcript.prepare([user("and now?")])
    assert not prompt.rerendered
    assert prompt.ids[: len(before)] == before
    assert prompt.ids == ChatTemplate(tokenizer).full([*messages, user("and now?")])


@pytest.mark.parametrize("name", APPENDING)
def test_a_context_is_a_prefix_of_the_first_prompt(name: str) -> None:
    tokenizer = make(APPENDING[name][0])
    transcript = Transcript(ChatTemplate(tokenizer), [SYSTEM])
    context = transcript.ids
    assert len(context) > len("Be kind.")
    assert transcript.prepare([user("hello")]).ids[: len(context)] == context


@pytest.mark.parametrize("name", REWRITING)
def test_a_rewriting_template_is_rendered_anew(name: str) -> None:
    template, end = REWRITING[name]
    tokenizer = make(template)
    answers = ["<think>\nhm\n</think>\n\nfirst", "<think>\nso\n</think>\n\nsecond"]
    transcript, messages = converse(tokenizer, end, [SYSTEM], answers)
    prompt = transcript.prepare([user("and now?")])
    assert prompt.rerendered
    assert prompt.ids == ChatTemplate(tokenizer).full([*messages, user("and now?")])


def test_what_a_template_refuses_is_an_error_and_changes_nothing() -> None:
    transcript, _ = converse(make(MISTRAL), "</s>", [], ["first"])
    before = transcript.ids[:]
    with pytest.raises(ValueError, match="roles must alternate"):
        transcript.prepare([assistant("not my turn")])
    assert transcript.ids == before


def test_tools_of_a_later_turn_render_the_head_anew() -> None:
    template = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}" + CHATML
    tokenizer = make(template)
    transcript, messages = converse(tokenizer, "<|im_end|>", [SYSTEM], ["first"])
    tools = [{"type": "function", "function": {"name": "now", "parameters": {}}}]
    prompt = transcript.prepare([user("what time is it?")], tools=tools)
    assert prompt.rerendered
    assert prompt.ids == ChatTemplate(tokenizer).full([*messages, user("what time is it?")], tools)
    transcript.commit(prompt, tokenizer.encode("noon<|im_end|>"), assistant("noon"))
    assert not transcript.prepare([user("thanks")]).rerendered
