"""Transcripts on local disk: after a restart of the process, sessions on this instance go on.

One append-only file a session, a line a record, each with its checksum. A file is only read when its session is asked
for again. A damaged or half-written end is cut off with a warning; what stands before it is kept. Closed and expired
sessions have no file. Written with the process's own buffers in mind, not the machine's: it survives a crash of the
process (kill -9), and a lost instance loses its disk anyway.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container.engine import Message, token_array
from container.transcript import Committed

logger = logging.getLogger(__name__)


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

    def opened(self, record: Opened) -> None:
        """Begin a session's file."""
        body = {"id": record.id, "expires_at": record.expires_at, "rank": record.rank, "context": list(record.context)}
        with self._path(record.id).open("xb") as file:
            file.write(_line(body))

    def committed(self, session_id: str, turn: Committed) -> None:
        """Add a turn."""
        body = {
            "kept": [turn.kept_turns, turn.kept_messages, turn.start],
            "ids": base64.b64encode(turn.ids.tobytes()).decode(),
            "messages": [each.decode() for each in turn.messages],
            "tools": turn.tools,
        }
        with self._path(session_id).open("ab") as file:
            file.write(_line(body))

    def ended(self, session_id: str) -> None:
        """Delete the file of a session that was closed or has expired."""
        self._path(session_id).unlink(missing_ok=True)

    def load(self, session_id: str) -> tuple[Opened, list[Committed]] | None:
        """What is known of a session; None where there is nothing, or nothing that can be read."""
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
        """Delete the files of sessions that expired before ``now`` (Unix time), and unreadable ones; gives the rest."""
        left = 0
        for path in self._folder.glob("*.jsonl"):
            with path.open("rb") as file:
                first = _body(file.readline())
            if first is None or first["expires_at"] <= now:
                path.unlink()
            else:
                left += 1
        return left

    def _path(self, session_id: str) -> Path:
        # Ids may be longer than file names.
        return self._folder / f"{hashlib.sha256(session_id.encode()).hexdigest()[:40]}.jsonl"


def _line(body: Mapping[str, Any]) -> bytes:
    data = json.dumps(body, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _body(line: bytes) -> dict[str, Any] | None:
    checksum, _, data = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(data):
        return None
    body: dict[str, Any] = json.loads(data)
    return body


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """The good records of a file, which is cut where the first bad one begins."""
    good = 0
    with path.open("rb") as file:
        for line in file:
            body = _body(line)
            if body is None:
                break
            good += len(line)
            yield body
    if good and good < path.stat().st_size:
        logger.warning("the end of journal %s is damaged: %d bytes dropped", path.name, path.stat().st_size - good)
        with path.open("ab") as file:
            file.truncate(good)


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
