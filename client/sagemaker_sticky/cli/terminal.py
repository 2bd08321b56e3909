"""Lines for a person or a program: coloured where there is a terminal and rich, plain elsewhere, JSON on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO


class Terminal:
    """Standard output, as the command's user wants it."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None) -> None:
        """``as_json`` writes an object a line and none of the words."""
        self.as_json = as_json
        self._out = out or sys.stdout
        self._console = None if as_json else _console(self._out)

    def say(self, text: str = "", style: str = "") -> None:
        """A line; ``style`` is rich's, such as ``dim`` or ``bold red``."""
        self.write(f"{text}\n", style)

    def row(self, cells: Sequence[tuple[str, str]]) -> None:
        """A line of pieces, each with its style."""
        for text, style in cells:
            self.write(text, style)
        self.write("\n")

    def write(self, text: str, style: str = "") -> None:
        """Text as it stands, shown at once."""
        if self.as_json:
            return
        if self._console is not None:
            self._console.print(text, style=style or None, end="", markup=False, highlight=False, soft_wrap=True)
        else:
            self._out.write(text)
        self._out.flush()

    def record(self, record: Mapping[str, Any], *, indent: int | None = None) -> None:
        """An object, where JSON was asked for."""
        if self.as_json:
            self._out.write(json.dumps(record, indent=indent, ensure_ascii=False) + "\n")
            self._out.flush()


def _console(out: TextIO) -> Any:
    if not out.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=out)
