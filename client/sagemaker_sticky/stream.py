"""An answer while it is written, read by blocking calls."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any

from ._core.calls import Call
from ._core.error_mapping import STREAM_BREAKS
from ._core.steps import run
from ._core.stream_state import Begin, StreamState


class Stream(StreamState):
    """The text of an answer, piece by piece, as the model writes it.

    Iterate over it to its end; ``text``, ``usage``, ``finish_reason`` and ``session`` are complete then. Leave early
    through ``with`` or :meth:`close`: that ends the generation.

    Raises:
        StreamInterrupted: while iterating; its ``text`` is what had arrived. With ``resume=True`` the model is asked
            to go on from there first.
    """

    def __init__(self, begin: Begin, *, perform: Callable[[Call], Any], **options: Any) -> None:
        """Begin it; ``perform`` answers calls, the rest is :class:`StreamState`'s."""
        super().__init__(begin, **options)
        self._perform = perform
        self._events: Any = run(self._beginning(), perform)
        self._pieces = self._fetch()

    def close(self) -> None:
        """Stop: the connection is closed, the container ends the generation. Nothing happens after the end."""
        self.closed = True
        self._pieces.close()
        if self._events is not None:
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
            while self._events is not None:
                events = self._events
                try:
                    # Reading on after the end mark, to the end of the bytes, gives the connection back to boto3's pool.
                    for event in events:
                        yield from self._read(event)
                    yield from self._reader.end()
                    self._events = None
                except STREAM_BREAKS as error:
                    self._events = run(self._going_on(error), self._perform)
                finally:
                    events.close()
        finally:
            self.closed = True
        self._end()
