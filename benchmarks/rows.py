"""The figures: samples become rows with a yardstick, a ratio and a bar; a table and a file show them."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table


@dataclasses.dataclass(frozen=True, slots=True)
class Samples:
    """Measured values of one thing, in one unit."""

    name: str
    values: Sequence[float]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def p99(self) -> float:
        """The value that one in a hundred exceeds."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``bar`` bounds its ratio to the yardstick's median, from above or below.

    With ``excess at p99`` that is by how much the p99 is above the yardstick's own, which a busy machine raises too.
    """

    name: str
    samples: Samples
    yardstick: Samples
    unit: str
    bar: float
    bound: Literal["at most", "at least"] = "at most"
    figure: Literal["median", "excess at p99"] = "median"

    @property
    def ratio(self) -> float:
        """The figure in multiples of its yardstick."""
        value = self.samples.median if self.figure == "median" else self.samples.p99 - self.yardstick.p99
        return value / self.yardstick.median

    @property
    def ok(self) -> bool:
        """Whether the bar is kept."""
        return self.ratio <= self.bar if self.bound == "at most" else self.ratio >= self.bar

    def as_json(self) -> dict[str, object]:
        """As it stands in ``build/bench.json``."""
        return {
            "name": self.name,
            "median": self.samples.median,
            "p99": self.samples.p99,
            "unit": self.unit,
            "yardstick": {
                "name": self.yardstick.name,
                "value": self.yardstick.median,
                "p99": self.yardstick.p99,
            },
            "ratio": self.ratio,
            "bar": f"{self.bound} {self.bar:g}",
            "ok": self.ok,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A scenario that could not measure what it was to, and why."""

    name: str
    reason: str
    ok: bool = False

    def as_json(self) -> dict[str, object]:
        """As it stands in ``build/bench.json``."""
        return {"name": self.name, "ok": False, "reason": self.reason}


def show(rows: Sequence[Row | Failure]) -> None:
    """Print the table."""
    table = Table(title="assetlock, beside its yardsticks")
    for heading in ("what", "median", "p99", "unit", "yardstick", "median", "p99", "ratio", "bar", ""):
        table.add_column(heading)
    for row in rows:
        if isinstance(row, Failure):
            table.add_row(row.name, *["-"] * 8, f"FAILED: {row.reason}")
        else:
            table.add_row(*_cells(row))
    Console(width=150).print(table)


def _cells(row: Row) -> Sequence[str]:
    return (
        row.name,
        f"{row.samples.median:.2f}",
        f"{row.samples.p99:.2f}",
        row.unit,
        row.yardstick.name,
        f"{row.yardstick.median:.2f}",
        f"{row.yardstick.p99:.2f}",
        f"{row.ratio:.2f}",
        f"{row.bound} {row.bar:g}",
        "ok" if row.ok else "MISSED",
    )


def save(rows: Sequence[Row | Failure], path: pathlib.Path) -> None:
    """Write the JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8")
