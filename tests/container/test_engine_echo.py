from __future__ import annotations

import asyncio
from array import array

from container.config import ContainerConfig
from container.engine import Chunk, Generation
from container.engine_echo import EchoEngine


def run(engine: EchoEngine, ids: array[int], **options: object) -> list[Chunk]:
    async def collect() -> list[Chunk]:
        return [chunk async for chunk in engine.generate(Generation(input_ids=ids, **options))]

    return asyncio.run(collect())


def chat(engine: EchoEngine, *messages: tuple[str, str]) -> array[int]:
    rendered = engine.tokenizer.render(
        [{"role": role, "content": content} for role, content in messages], add_generation_prompt=True
    )
    return engine.tokenizer.encode(rendered)


def test_an_answer_quotes_the_last_and_the_first_user_message() -> None:
    engine = EchoEngine(ContainerConfig(engine="echo"))
    ids = chat(
        engine, ("system", "S"), ("user", "Mein Hund heißt Rex 🐕"), ("assistant", "ok"), ("user", "Wie heißt er?")
    )
    text = "".join(chunk.text for chunk in run(engine, ids))
    assert text == "You said: Wie heißt er? | At first: Mein Hund heißt Rex 🐕"


def test_the_same_prompt_gets_the_same_tokens_and_is_cached_the_second_time() -> None:
    engine = EchoEngine(ContainerConfig(engine="echo"))
    ids = chat(engine, ("user", "hello there"))
    first, second = run(engine, ids), run(engine, ids)
    assert [chunk.token_ids for chunk in first] == [chunk.token_ids for chunk in second]
    assert first[-1].usage is not None
    assert first[-1].usage.cached_tokens == 0
    assert second[-1].usage is not None
    assert second[-1].usage.cached_tokens == len(ids) - 1


def test_a_released_session_is_not_cached() -> None:
    engine = EchoEngine(ContainerConfig(engine="echo"))
    ids = chat(engine, ("user", "hello there"))
    run(engine, ids, session_id="a")
    asyncio.run(engine.release("a"))
    usage = run(engine, ids, session_id="a")[-1].usage
    assert usage is not None
    assert usage.cached_tokens == 0


def test_an_answer_is_cut_at_max_new_tokens() -> None:
    engine = EchoEngine(ContainerConfig(engine="echo"))
    last = run(engine, chat(engine, ("user", "a long question, is it not?")), sampling_params={"max_new_tokens": 3})[-1]
    assert last.finish_reason == {"type": "length", "length": 3}
    assert last.usage is not None
    assert last.usage.completion_tokens == 3
