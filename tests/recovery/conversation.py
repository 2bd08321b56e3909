"""A conversation on the echo engine, whose answers show what the endpoint remembers."""

from __future__ import annotations

from sagemaker_sticky import Session, StickyClient

FIRST = "My dog is called Rex."
SECOND = "What is my dog called?"
THIRD = "And how old is he?"


def reply(last: str, first: str | None = FIRST) -> str:
    """What the echo engine answers to `last` in a conversation that began with `first`."""
    return f"You said: {last}" if first in (None, last) else f"You said: {last} | At first: {first}"


def prompt_tokens(client: StickyClient, *said: str) -> int:
    """Tokens that the last of these turns is given in a session in which nothing went wrong."""
    with client.session() as session:
        for text in said:
            turn = session.invoke(text)
    assert session.reopened == 0
    return turn.usage.prompt_tokens


def transcript(*said: str) -> list[dict[str, str]]:
    return [
        message
        for text in said
        for message in (
            {"role": "user", "content": text},
            {"role": "assistant", "content": reply(text, said[0])},
        )
    ]


def begun(client: StickyClient, **options: float) -> Session:
    """An open session that has had its first turn."""
    session = client.session(**options).open()  # type: ignore[arg-type]
    assert session.invoke(FIRST).text == reply(FIRST)
    return session
