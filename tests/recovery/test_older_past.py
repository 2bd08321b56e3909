"""A container that comes back with an older past: what was said since is said again, and never answered without it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sagemaker_sticky import Session, SessionConflict, StickyClient

from emulator import Emulator, running_emulator
from emulator.container_process import ContainerProcess
from tests.container.conftest import wait_until

from .conftest import is_ready
from .conversation import FIRST, prompt_tokens, reply, transcript

TURNS = [FIRST, *(f"This is turn {number}." for number in range(2, 10))]


class Instance:
    """A supervised container whose journal can be put back to an older state."""

    def __init__(self, supervisor: ContainerProcess, journal: Path) -> None:
        self._supervisor = supervisor
        self._journal = journal
        self._kept = journal.with_name("kept")

    def keep_journal(self) -> None:
        shutil.copytree(self._journal, self._kept)

    def restart_with_kept_journal(self) -> None:
        os.kill(self._supervisor.pid, signal.SIGSTOP)  # else it starts another server before the journal is back
        try:
            os.kill(self._server_pid(), signal.SIGKILL)
            wait_until(lambda: not is_ready(self._supervisor.url))
            shutil.rmtree(self._journal)
            self._kept.rename(self._journal)
        finally:
            os.kill(self._supervisor.pid, signal.SIGCONT)
        wait_until(lambda: is_ready(self._supervisor.url))

    def _server_pid(self) -> int:
        pid = self._supervisor.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[-1])


@pytest.fixture(scope="module")
def supervised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Emulator, Instance]]:
    journal = tmp_path_factory.mktemp("instance") / "journal"
    command = ("env", f"SESSION_JOURNAL_DIR={journal}", sys.executable, "-m", "container", "serve")
    with running_emulator(instances=1, engine="echo", command=command) as emulator:
        (supervisor,) = emulator.fleet.instances.values()
        yield emulator, Instance(supervisor, journal)


@pytest.fixture
def instance(supervised: tuple[Emulator, Instance]) -> Instance:
    return supervised[1]


@pytest.fixture
def client(supervised: tuple[Emulator, Instance], make_client: Callable[..., StickyClient]) -> StickyClient:
    return make_client(supervised[0])


def put_back(instance: Instance, session: Session) -> None:
    """Eight turns, after which the container is killed and comes back at the third."""
    for number, text in enumerate(TURNS[:8], start=1):
        assert session.invoke(text).text == reply(text)
        if number == 3:
            instance.keep_journal()
    instance.restart_with_kept_journal()


@pytest.mark.parametrize("stream", [False, True])
def test_the_next_turn_has_the_whole_past(client: StickyClient, instance: Instance, stream: bool) -> None:
    with client.session() as session:
        put_back(instance, session)
        if stream:
            with session.stream(TURNS[8]) as answer:
                text = "".join(answer)
            turn = answer.turn
        else:
            turn = session.invoke(TURNS[8])
            text = turn.text

        assert turn is not None
        assert (text, session.turn, session.reopened) == (reply(TURNS[8]), 9, 1)
        assert turn.usage.prompt_tokens == prompt_tokens(client, *TURNS)
        assert session.messages == transcript(*TURNS)


def test_without_the_transcript_nothing_is_answered(client: StickyClient, instance: Instance) -> None:
    opened = client.session().open()
    attached = client.attach(opened.id)
    put_back(instance, attached)

    with pytest.raises(SessionConflict, match="after the 8 turns that count here"):
        attached.invoke(TURNS[8])

    again = client.attach(opened.id)
    assert again.invoke(TURNS[3]).text == reply(TURNS[3])
    assert again.turn == 4, "it stands where it was put back to, and the refused turn left nothing there"
    again.close()
