"""How a benchmark tells what it measured: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, and the bar that it is held against."""

    figure: str
    value: float
    unit: str
    bar: float
    better: Literal["higher", "lower"]

    @property
    def holds(self) -> bool:
        """Whether the value reaches its bar."""
        return self.value >= self.bar if self.better == "higher" else self.value <= self.bar


def report(name: str, figures: Sequence[Figure]) -> None:
    """Print ``figures`` as a table, write them to ``benchmarks/out/NAME.json``. A missed bar is shown, no failure."""
    table = Table("figure", "value", "bar", "", title=f"benchmarks: {name}")
    for each in figures:
        sign = "≥" if each.better == "higher" else "≤"
        mark = "[green]yes[/]" if each.holds else "[red]no[/]"
        table.add_row(each.figure, f"{each.value:.3g} {each.unit}", f"{sign} {each.bar:g}", mark)
    Console(width=120).print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps([asdict(each) for each in figures], indent=2) + "\n")
