"""Plant each kept mutant in a copy of the code, run tests until one fails, and show which: the cheapest first.

Exit code 1 when one survives: that is a defect of the tests. 2 when they fail with none planted: that shows nothing.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from tests.mutants import kept, policies
from tests.mutants.mutant import Mutant

ROOT = pathlib.Path(__file__).parents[2]
MUTANTS = (*kept.MUTANTS, *policies.MUTANTS)
LONGEST = 600.0
"""Seconds for a stage of the tests; a mutant that keeps them from ending is found by that."""


def planted(mutant: Mutant, folder: pathlib.Path) -> None:
    """Change the module in this copy. Raises ValueError when its text is no longer there."""
    module = folder / mutant.path
    text = module.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"mutant {mutant.name!r} does not fit {mutant.module} any more")
    module.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def found_by(mutant: Mutant | None, stages: Iterable[tuple[str, ...]]) -> str | None:
    """The first test that fails with the mutant; ``None`` when all pass."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("src", "tests", "manifests", "crds", "docs"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        if mutant is not None:
            planted(mutant, folder)
        return next((found for stage in stages if (found := _failing(folder, stage))), None)


def _failing(folder: pathlib.Path, stage: tuple[str, ...]) -> str | None:
    """Raises RuntimeError when pytest can't so much as begin: that would find every mutant, and so none."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *stage],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src")},
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end in {LONGEST:.0f} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"{' '.join(stage)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed.group(1)


def _tried(mutant: Mutant) -> tuple[Mutant, str | None, float]:
    began = time.monotonic()
    found = found_by(mutant, mutant.stages)
    seconds = time.monotonic() - began
    print(f"{mutant.name}: {found or 'SURVIVED'}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return mutant, found, seconds


def main() -> int:
    """Try those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants with one of these in their name or module")
    parser.add_argument("--workers", type=int, default=2, help="so many at once (default: %(default)s)")
    options = parser.parse_args()
    wanted = [
        mutant
        for mutant in MUTANTS
        if not options.words or any(word in f"{mutant.name} {mutant.path}" for word in options.words)
    ]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        stages = {frozenset(stage): stage for mutant in wanted for stage in mutant.stages}
        trials = pool.map(_tried, wanted)
        control = pool.submit(found_by, None, stages.values())
        tried = list(trials)
    if amiss := control.result():
        print(f"{amiss} fails without any mutant, so the table says nothing", file=sys.stderr)
        return 2
    table = Table("mutant", "module", "found by", "seconds")
    for mutant, found, seconds in tried:
        table.add_row(mutant.name, mutant.module, found or "NOBODY", f"{seconds:.1f}")
    Console(width=200).print(table)
    survivors = sum(found is None for _, found, _ in tried)
    print(f"{len(tried)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
