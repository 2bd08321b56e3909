"""An answer while it is written: bytes in whatever pieces they come, to the text that the model writes.

SageMaker frames a container's bytes anew: one PayloadPart may hold several events, half of one, or half of a UTF-8
character. So bytes are kept until a line is whole (:class:`LineBuffer`), read into a turn (:class:`StreamReader`, no
I/O), and fetched by :class:`Stream`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from types import TracebackType
from typing import Any, NoReturn

from botocore.eventstream import ParserError
from sagemaker_sticky_protocol import SSE_DONE, SessionInfo

from ._errors import InvalidResponse, StreamInterrupted
from ._mapping import LOWER_ERRORS, error_of_container, stream_error_from
from ._turn import Turn, Usage, read_meta_info, read_openai_usage, read_session

_BROKEN = (*LOWER_ERRORS, ParserError, OSError)
"""What reading an EventStream may raise; ParserError is a frame with a wrong checksum."""


class LineBuffer:
    """Whole lines out of bytes that may be cut anywhere."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends."""
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

    def __init__(self, *, request_id: str | None = None) -> None:
        """Nothing has come yet; ``request_id`` goes into errors."""
        self.done = False
        self.text = ""
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self.session: SessionInfo | None = None
        self._lines = LineBuffer()
        self._message: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._request_id = request_id

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
            field, _, value = line.partition(b":")
            if self.done or field != b"data":
                continue  # a keep-alive comment (": ..."), the blank line between events, or a field not used here
            if value.strip() == SSE_DONE.encode():
                self.done = True
            elif piece := self._take(value):
                self.text += piece
                yield piece

    def _take(self, data: bytes) -> str:
        try:
            chunk = json.loads(data)
        except ValueError:
            self._interrupt("the stream broke off inside an event", code="InvalidResponse")
        if (reported := error_of_container(chunk)) is not None:
            _, code, message = reported
            self._interrupt(message, code=code)
        try:
            self._last = chunk
            self.session = read_session(chunk) or self.session
            return self._generation(chunk["generation"]) if "generation" in chunk else self._completion(chunk)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, InvalidResponse) as error:
            self._interrupt(f"an event is not of this contract: {error!r}", code="InvalidResponse")

    def _generation(self, generation: dict[str, Any]) -> str:
        if (generation.get("meta_info") or {}).get("finish_reason"):
            self.usage, self.finish_reason = read_meta_info(generation["meta_info"])
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


class Stream:
    """The text of an answer, piece by piece, as the model writes it.

    Iterate over it to its end; ``text``, ``usage``, ``finish_reason`` and ``session`` are complete then. Leave early
    through ``with`` or :meth:`close`: that ends the generation.

    Raises:
        StreamInterrupted: while iterating; its ``text`` is what had arrived.
    """

    def __init__(
        self, events: Any, *, request_id: str | None = None, on_end: Callable[[Turn], None] | None = None
    ) -> None:
        """``events`` is botocore's EventStream; ``on_end`` gets the turn, once, when it was read to its end."""
        self._events = events
        self._reader = StreamReader(request_id=request_id)
        self._on_end = on_end
        self._pieces = self._fetch()
        self.closed = False
        """Whether it ended, broke or was closed."""

    @property
    def text(self) -> str:
        """What has arrived so far."""
        return self._reader.text

    @property
    def usage(self) -> Usage | None:
        """Tokens of the turn; None before the end."""
        return self._reader.usage

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped; None before the end."""
        return self._reader.finish_reason

    @property
    def session(self) -> SessionInfo | None:
        """The session after this turn; None before the end, and outside a session."""
        return self._reader.session

    @property
    def turn(self) -> Turn | None:
        """The whole turn; None until the stream was read to its end."""
        return self._reader.turn() if self._reader.done and self.closed else None

    def close(self) -> None:
        """Stop: the connection is closed, the container ends the generation. Nothing happens after the end."""
        self.closed = True
        self._pieces.close()
        self._events.close()

    def __iter__(self) -> Iterator[str]:
        """The stream itself: it can be read once."""
        return self

    def __next__(self) -> str:
        """The next piece of text, never empty."""
        return next(self._pieces)

    def __enter__(self) -> Stream:
        """The stream itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it, whatever happened."""
        self.close()

    def _fetch(self) -> Generator[str, None, None]:
        try:
            try:
                # Reading on after the end mark, to the end of the bytes, gives the connection back to boto3's pool.
                for event in self._events:
                    yield from self._reader.feed(event.get("PayloadPart", {}).get("Bytes", b""))
            except _BROKEN as error:
                if not self._reader.done:
                    raise self._reader.interrupted(error) from error
            yield from self._reader.end()
        finally:
            self.closed = True
            self._events.close()
        if self._on_end is not None:
            self._on_end(self._reader.turn())
