"""Run the scenarios, or those that are named, print the table, write ``build/bench.json``."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from benchmarks import rows, runner
from benchmarks.registry import scenarios
from benchmarks.stage import installed

REPORT = pathlib.Path("build/bench.json")


def main(only: Sequence[str]) -> int:
    """Measure; 1 when a bar is missed or a scenario fails, 2 when there is no scenario of that name."""
    try:
        chosen = scenarios(only)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    taken: list[rows.Row | rows.Failure] = []
    try:
        runner.run(chosen, installed, taken)
    finally:
        rows.show(taken)
        rows.save(taken, REPORT)
    return 0 if all(row.ok for row in taken) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
