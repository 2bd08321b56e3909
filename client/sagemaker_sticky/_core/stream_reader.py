"""From the bytes of a stream, in whatever pieces they come, to the text that the model writes. No I/O.

SageMaker frames a container's bytes anew: one PayloadPart may hold several events, half of one, or half of a UTF-8
character. So bytes are kept until a line is whole (:class:`LineBuffer`), and lines are read into a turn
(:class:`StreamReader`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from sagemaker_sticky_protocol import SSE_DONE, SessionInfo

from ..errors import InvalidResponse, StreamInterrupted
from .answers import Turn, Usage, read_meta_info, read_openai_usage, read_session
from .error_mapping import error_of_container, stream_error_from

_DONE = SSE_DONE.encode()
# json.loads looks for an encoding and for spaces first: half of its time.
_read_json = json.JSONDecoder().raw_decode


class LineBuffer:
    """Whole lines out of bytes that may be cut anywhere."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends."""
        if not self._rest and data.endswith(b"\n"):
            return data[:-1].split(b"\n")  # as most parts are: whole events
        searched = len(self._rest)
        self._rest += data
        end = self._rest.rfind(b"\n", searched)
        if end < 0:
            return []
        lines = bytes(self._rest[:end]).split(b"\n")
        del self._rest[: end + 1]
        return lines

    def end(self) -> list[bytes]:
        """What is left when nothing more comes."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest else []


class StreamReader:
    """Builds a turn out of the lines of a stream, in either shape (``generation`` or ``chat.completion.chunk``)."""

    def __init__(self, *, request_id: str | None = None, text: str = "") -> None:
        """Nothing has come yet but ``text``, before the stream broke; ``request_id`` goes into errors."""
        self.done = False
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self.session: SessionInfo | None = None
        self._lines = LineBuffer()
        self._pieces = [text]
        self._ending = False
        self._message: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._request_id = request_id

    @property
    def text(self) -> str:
        """The text so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def feed(self, data: bytes) -> Iterator[str]:
        """The text in the lines that ``data`` completes, piece by piece.

        Raises:
            StreamInterrupted: the container reported an error, or sent what is not of the contract.
        """
        return self._read(self._lines.feed(data))

    def end(self) -> Iterator[str]:
        """The text in what is left when nothing more comes: a stream may end without a final newline.

        Raises:
            StreamInterrupted: the stream is not complete.
        """
        self._ending = True
        yield from self._read(self._lines.end())
        if not self.done:
            self._interrupt("the stream ended before its end mark")
        if self.usage is None:
            self._interrupt("the stream carried no usage", code="InvalidResponse")

    def turn(self) -> Turn:
        """The whole turn, after :meth:`end`."""
        return Turn(
            text=self.text,
            usage=self.usage or Usage(),
            finish_reason=self.finish_reason,
            session=self.session,
            message={"role": "assistant", "content": self.text, **self._message},
            raw=self._last,
        )

    def interrupted(self, error: Exception) -> StreamInterrupted:
        """The error to raise for what reading the bytes raised."""
        return stream_error_from(error, text=self.text, request_id=self._request_id)

    def _read(self, lines: Iterable[bytes]) -> Iterator[str]:
        for line in lines:
            # Else a keep-alive comment (": ..."), the blank line between events, or a field not used here.
            if line.startswith(b"data:") and not self.done:
                value = line[5:].strip()
                if value == _DONE:
                    self.done = True
                elif piece := self._take(value):
                    self._pieces.append(piece)
                    yield piece

    def _take(self, data: bytes) -> str:
        try:
            text = data.decode()
            chunk, end = _read_json(text)
        except ValueError:
            end = -1
        if end < 0 or end != len(text):
            if self._ending:
                self._interrupt("the stream broke off inside an event")
            self._interrupt("an event is not JSON", code="InvalidResponse")
        try:
            if "error" in chunk and (reported := error_of_container(chunk)) is not None:
                _, code, message = reported
                self._interrupt(message, code=code)
            self._last = chunk
            if "session" in chunk:
                self.session = read_session(chunk) or self.session
            return self._generation(chunk["generation"]) if "generation" in chunk else self._completion(chunk)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, InvalidResponse) as error:
            self._interrupt(f"an event is not of this contract: {error!r}", code="InvalidResponse")

    def _generation(self, generation: dict[str, Any]) -> str:
        meta_info = generation.get("meta_info")
        if meta_info and meta_info.get("finish_reason"):
            self.usage, self.finish_reason = read_meta_info(meta_info)
        return str(generation.get("text") or "")

    def _completion(self, chunk: dict[str, Any]) -> str:
        if chunk.get("usage"):
            self.usage = read_openai_usage(chunk["usage"])
        if not chunk["choices"]:
            return ""
        choice = chunk["choices"][0]
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        delta = dict(choice["delta"])
        piece = delta.pop("content", None)
        _merge(self._message, delta)
        return str(piece or "")

    def _interrupt(self, message: str, *, code: str | None = None) -> NoReturn:
        raise StreamInterrupted(message, text=self.text, code=code, request_id=self._request_id)


def _merge(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta to a message the way OpenAI defines it: text grows, tool calls grow under their ``index``."""
    for name, value in delta.items():
        if name == "tool_calls":
            calls = message.setdefault(name, [])
            for part in value:
                while len(calls) <= part["index"]:
                    calls.append({})
                _merge(calls[part["index"]], {key: each for key, each in part.items() if key != "index"})
        elif isinstance(value, dict):
            _merge(message.setdefault(name, {}), value)
        elif isinstance(value, str) and name not in ("role", "id", "type", "name"):
            message[name] = message.get(name, "") + value
        elif value is not None:
            message[name] = value
