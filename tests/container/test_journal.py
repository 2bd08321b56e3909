from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

import pytest
from sagemaker_sticky_protocol import ErrorCode

from container.config import ContainerConfig
from container.engine import Message
from container.engine_echo import EchoEngine
from container.errors import ServerError
from container.journal import Journal, Opened
from container.sessions import SessionTable
from container.transcript import ChatTemplate

from .test_sessions import Clock, make_table

ENGINE = EchoEngine(ContainerConfig(engine="echo"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def table(folder: Path, clock: Clock) -> SessionTable:
    """A process's sessions; a second one on the same folder is the process after a restart."""
    return make_table(ChatTemplate(ENGINE.tokenizer), clock, Journal(folder))


def files(folder: Path) -> list[Path]:
    """The sessions' own files."""
    return list(folder.glob("*.session"))


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def take_turn(sessions: SessionTable, session_id: str, question: str) -> None:
    session = sessions.find(session_id)
    prompt = session.transcript.prepare([user(question)])
    sessions.commit(
        session, prompt, ENGINE.tokenizer.encode("fine<|im_end|>"), {"role": "assistant", "content": "fine"}
    )


def test_a_session_is_the_same_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    before = table(tmp_path, clock)
    before.open("a", [{"role": "system", "content": "be kind 🐕"}])
    take_turn(before, "a", "one")
    take_turn(before, "a", "two")
    after = table(tmp_path, clock)
    old, new = before.find("a"), after.find("a")
    assert (new.expires_at, new.rank) == (old.expires_at, old.rank)
    assert new.transcript.ids == old.transcript.ids
    assert new.transcript.messages == old.transcript.messages
    assert new.transcript.prepare([user("three")]).ids == old.transcript.prepare([user("three")]).ids


def test_an_id_in_the_journal_is_in_use(tmp_path: Path, clock: Clock) -> None:
    table(tmp_path, clock).open("a", ())
    with pytest.raises(ServerError, match="open already") as problem:
        table(tmp_path, clock).open("a", ())
    assert problem.value.code is ErrorCode.SESSION_CONFLICT


def test_closed_and_expired_sessions_leave_no_file(tmp_path: Path, clock: Clock) -> None:
    sessions = table(tmp_path, clock)
    for session_id in ("closed", "reaped"):
        sessions.open(session_id, ())
        take_turn(sessions, session_id, "one")
    assert len(files(tmp_path)) == 2
    asyncio.run(sessions.close("closed"))
    clock.now += 60
    sessions.reap()
    assert files(tmp_path) == []
    after = table(tmp_path, clock)
    for session_id in ("closed", "reaped"):
        with pytest.raises(ServerError, match="not open here"):
            after.find(session_id)


def test_a_start_sweeps_what_expired_meanwhile(tmp_path: Path, clock: Clock) -> None:
    sessions = table(tmp_path, clock)
    sessions.open("old", ())
    clock.now += 30
    sessions.open("young", ())
    assert Journal(tmp_path).sweep(clock.now + 40) == 1
    after = table(tmp_path, clock)
    with pytest.raises(ServerError):
        after.find("old")
    assert after.find("young")


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_end_is_dropped_and_what_stands_before_it_kept(
    tmp_path: Path, clock: Clock, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = table(tmp_path, clock)
    sessions.open("a", ())
    take_turn(sessions, "a", "one")
    take_turn(sessions, "a", "two")
    (path,) = files(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-10] if damage == "cut" else data[:-10] + b"X" + data[-9:])
    with caplog.at_level(logging.WARNING):
        session = table(tmp_path, clock).find("a")
    assert session.transcript.turns == 1
    assert "is damaged" in caplog.text
    # What comes next is written after the good part, and read again.
    again = table(tmp_path, clock)
    take_turn(again, "a", "two, again")
    assert table(tmp_path, clock).find("a").transcript.messages == again.find("a").transcript.messages


def test_a_file_with_no_good_record_is_no_session(tmp_path: Path, clock: Clock) -> None:
    sessions = table(tmp_path, clock)
    sessions.open("a", ())
    take_turn(sessions, "a", "one")
    (path,) = files(tmp_path)
    path.write_bytes(b"nonsense\n")
    with pytest.raises(ServerError, match="not open here"):
        table(tmp_path, clock).find("a")
    assert table(tmp_path, clock).open("a", ())


def test_a_session_without_a_turn_goes_on_too_even_with_a_damaged_end(tmp_path: Path, clock: Clock) -> None:
    sessions = table(tmp_path, clock)
    sessions.open("a", [{"role": "system", "content": "be kind"}])
    sessions.open("b", ())
    path = tmp_path / "opened.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\0")[:-5])
    after = table(tmp_path, clock)
    assert after.find("a").transcript.messages == [{"role": "system", "content": "be kind"}]
    with pytest.raises(ServerError):
        after.find("b")


def test_the_list_of_opened_sessions_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("container.journal.NOTES_BYTES", 2000)
    journal = Journal(tmp_path)
    journal.opened(Opened(id="stays", expires_at=1.0, rank=0, context=()))
    for number in range(200):
        journal.opened(Opened(id=f"goes-{number}", expires_at=1.0, rank=0, context=()))
        journal.ended(f"goes-{number}")
    assert (tmp_path / "opened.jsonl").stat().st_size == 2000
    again = Journal(tmp_path)
    assert again.load("stays")
    assert again.load("goes-7") is None


def test_a_disk_that_fails_ends_the_journal_and_no_conversation(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = table(tmp_path / "disk", clock)
    sessions.open("a", ())
    shutil.rmtree(tmp_path / "disk")
    take_turn(sessions, "a", "one")
    take_turn(sessions, "a", "two")
    assert sessions.find("a").transcript.turns == 2
    assert caplog.text.count("the journal ends here") == 1


def test_the_folder_is_private(tmp_path: Path) -> None:
    Journal(tmp_path / "sessions").opened(Opened(id="a", expires_at=1.0, rank=0, context=()))
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o700
