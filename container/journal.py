"""Transcripts on local disk: after a restart of the process, sessions on this instance go on.

Append-only files, a line a record, each with its checksum. ``opened.jsonl`` has the sessions that have had no turn yet;
with its first turn a session gets a file of its own, which is only read when the session is asked for again. A damaged
or half-written end is cut off with a warning; what stands before it is kept. Closed and expired sessions leave nothing.
Records go to the operating system at once (``opened.jsonl`` is mapped into memory, which spares a call), and that is
what it takes to survive a crash of the process, kill -9 included; a lost instance loses its disk anyway.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import mmap
import os
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from container.engine import Message, token_array
from container.transcript import Committed

logger = logging.getLogger(__name__)

OPEN_FILES = 256
NOTES_BYTES = 4 * 1024 * 1024
"""Size of ``opened.jsonl``; once full, it is written anew with the sessions that it still stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The first record of a session."""

    id: str
    expires_at: float
    """Unix time, seconds."""
    rank: int
    context: Sequence[Message]


class Journal:
    """The sessions' files in one folder, which is made private to this user."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._files: OrderedDict[str, int] = OrderedDict()
        """Descriptors of the files written to last: opening one costs more than writing a turn."""
        self._notes: mmap.mmap
        self._noted = 0
        self._opened: dict[str, bytes] = {}
        """First records of the sessions that have no file of their own."""
        for record in _read(folder / "opened.jsonl"):
            if "ended" in record:
                self._opened.pop(record["ended"], None)
            else:
                self._opened[record["id"]] = _line(record)
        self._rewrite()

    def opened(self, record: Opened) -> None:
        """Write a session down."""
        body = {"id": record.id, "expires_at": record.expires_at, "rank": record.rank, "context": list(record.context)}
        self._opened[record.id] = line = _line(body)
        self._note(line)

    def committed(self, session_id: str, turn: Committed) -> None:
        """Add a turn."""
        body = {
            "kept": [turn.kept_turns, turn.kept_messages, turn.start],
            "ids": base64.b64encode(turn.ids.tobytes()).decode(),
            "messages": [each.decode() for each in turn.messages],
            "tools": turn.tools,
        }
        first = self._opened.pop(session_id, None)
        if first is not None:
            self._write(session_id, first + _line(body), os.O_CREAT | os.O_TRUNC)
            self._note(_line({"ended": session_id}))
        else:
            self._write(session_id, _line(body))

    def ended(self, session_id: str) -> None:
        """Forget a session that was closed or has expired."""
        if self._opened.pop(session_id, None) is not None:
            self._note(_line({"ended": session_id}))
            return
        descriptor = self._files.pop(session_id, None)
        if descriptor is not None:
            os.close(descriptor)
        self._path(session_id).unlink(missing_ok=True)

    def load(self, session_id: str) -> tuple[Opened, list[Committed]] | None:
        """What is known of a session; None where there is nothing, or nothing that can be read."""
        if session_id in self._opened:
            records = [_body(self._opened[session_id]) or {}]
        else:
            path = self._path(session_id)
            if not path.exists():
                return None
            records = list(_read(path))
            if not records:
                logger.warning("the journal of session %s cannot be read and is dropped", session_id)
                path.unlink()
                return None
        return Opened(**records[0]), [_turn(each) for each in records[1:]]

    def sweep(self, now: float) -> int:
        """Forget the sessions that expired before ``now`` (Unix time), and unreadable files; gives how many stay."""
        for session_id, line in list(self._opened.items()):
            if (_body(line) or {})["expires_at"] <= now:
                self.ended(session_id)
        left = len(self._opened)
        for path in self._folder.glob("*.session"):
            with path.open("rb") as file:
                first = _body(file.readline())
            if first is None or first["expires_at"] <= now:
                path.unlink()
            else:
                left += 1
        return left

    def _note(self, line: bytes) -> None:
        """Add a line to ``opened.jsonl``."""
        end = self._noted + len(line)
        if end > len(self._notes):
            self._notes.close()
            self._rewrite()  # from what is open now, the line included
            return
        self._notes[self._noted : end] = line
        self._noted = end

    def _rewrite(self) -> None:
        live = b"".join(self._opened.values())
        path, fresh = self._folder / "opened.jsonl", self._folder / "opened.new"
        with fresh.open("w+b") as file:
            file.write(live)
            file.flush()
            size = max(NOTES_BYTES, 4 * len(live))
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk must show here, not when memory is written to
            self._notes = mmap.mmap(file.fileno(), size)
        fresh.replace(path)
        self._noted = len(live)

    def _write(self, session_id: str, data: bytes, flags: int = 0) -> None:
        descriptor = self._files.get(session_id)
        if descriptor is None:
            descriptor = os.open(self._path(session_id), os.O_WRONLY | os.O_APPEND | flags, 0o600)
            self._files[session_id] = descriptor
            if len(self._files) > OPEN_FILES:
                os.close(self._files.popitem(last=False)[1])
        os.write(descriptor, data)

    def _path(self, session_id: str) -> Path:
        # Ids keep to letters, digits and hyphens, and may be longer than file names.
        name = session_id if len(session_id) <= 200 else hashlib.sha256(session_id.encode()).hexdigest()
        return self._folder / f"{name}.session"


def _line(body: Mapping[str, Any]) -> bytes:
    data = orjson.dumps(body)
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _body(line: bytes) -> dict[str, Any] | None:
    checksum, _, data = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(data):
        return None
    body: dict[str, Any] = orjson.loads(data)
    return body


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """The good records of a file, which is cut where the first bad one begins."""
    good = 0
    with suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            if line.startswith(b"\0"):  # what opened.jsonl has not used yet
                return
            body = _body(line)
            if body is None:
                break
            good += len(line)
            yield body
        size = path.stat().st_size
        if good < size:
            logger.warning("the end of journal %s is damaged: %d bytes dropped", path.name, size - good)
            if good:
                os.truncate(path, good)


def _turn(body: Mapping[str, Any]) -> Committed:
    kept_turns, kept_messages, start = body["kept"]
    ids: array[int] = token_array()
    ids.frombytes(base64.b64decode(body["ids"]))
    return Committed(
        kept_turns=kept_turns,
        kept_messages=kept_messages,
        start=start,
        ids=ids,
        messages=tuple(each.encode() for each in body["messages"]),
        tools=body["tools"],
    )
