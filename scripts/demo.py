"""``make demo``: two remembered conversations at once, through the real client and an emulated SageMaker endpoint.

Each turn sends only its new words, and the third question can only be answered from the first turn. Ends with
``demo: OK``, or with what went wrong and exit status 1. Everything that it starts is stopped, on Ctrl-C too.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sagemaker_sticky import Session, StickyClient

from emulator import running_emulator

SYSTEM = "You remember what the user told you and answer in one short sentence."
CONVERSATIONS = (
    (("My dog is called Rex.", "What do dogs like to eat?", "What is my dog called?"), "Rex"),
    (
        ("Remember this number: 4711.", "What is the capital of Italy?", "Which number did I ask you to remember?"),
        "4711",
    ),
)
"""Three turns each, and the word that the third answer must have."""

ROW = "{session:<9} {turn:>4}  {instance:<9} {prompt:>6} {cached:>6} {ttft:>7}  {answer}"


@dataclass(frozen=True)
class Outcome:
    """What came of one conversation."""

    session_id: str
    remembered: bool
    reused: bool


def converse(client: StickyClient, questions: Sequence[str], fact: str) -> Outcome:
    """Hold one conversation, printing a row for each turn."""
    with client.session(system=SYSTEM) as session:
        earlier = 0
        reused, answer = True, ""
        for question in questions:
            answer, prompt, cached, completion = _turn(session, question)
            reused = reused and cached >= earlier - 1
            earlier = prompt + completion
        return Outcome(session_id=session.id, remembered=fact in answer, reused=reused)


def _turn(session: Session, question: str) -> tuple[str, int, int, int]:
    asked, first = time.monotonic(), None
    with session.stream(question, temperature=0) as stream:
        for _ in stream:
            first = first or time.monotonic()
    usage = stream.usage
    assert usage is not None
    row = ROW.format(
        session=session.id[:8],
        turn=session.turn,
        instance=session.served_by,
        prompt=usage.prompt_tokens,
        cached=usage.cached_tokens,
        ttft=f"{(first or time.monotonic()) - asked:.2f} s",
        answer=f"{question} -> {stream.text.strip()}"[:90],
    )
    print(row + "\n", end="", flush=True)  # in one write: two conversations print at once
    return stream.text, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens


def main() -> int:
    """Start the emulator, hold the conversations, judge them; gives the exit status."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--engine", choices=("sglang", "echo"), default="sglang")
    engine = parser.parse_args().engine
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    model = "the echo engine: no model, answers quote the question" if engine == "echo" else "real SGLang on the CPU"
    print(f"demo: two containers, {model}", flush=True)
    try:
        with running_emulator(instances=2, engine=engine, report=lambda line: print(f"demo: {line}", flush=True)) as it:
            os.environ.update(it.environment)
            print(
                ROW.format(session="session", turn="turn", instance="instance", prompt="prompt", cached="cached",
                           ttft="TTFT", answer="question -> answer")
            )  # fmt: skip
            client = StickyClient(it.config.endpoint_name)
            with ThreadPoolExecutor() as pool:
                outcomes = list(pool.map(lambda each: converse(client, *each), CONVERSATIONS))
    except KeyboardInterrupt:
        print("demo: stopped", flush=True)
        return 130
    for outcome in outcomes:
        if not outcome.remembered:
            print(f"demo: FAILED: the third answer of session {outcome.session_id} did not know the first turn")
        if not outcome.reused:
            print(f"demo: FAILED: session {outcome.session_id} computed earlier tokens again")
    if not all(each.remembered and each.reused for each in outcomes):
        return 1
    print(f"demo: every earlier token came from the KV cache; {time.monotonic() - started:.0f} s in all")
    print("demo: OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
