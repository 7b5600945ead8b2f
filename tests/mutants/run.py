"""Plant each kept mutant in a copy of the code, run the fast tests, and show what found it.

Exit code 1 when one survives: that is a defect of the tests. 2 when they fail with none planted: that shows nothing.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from rich.console import Console
from rich.table import Table

from tests.mutants.kept import MUTANTS, Mutant

ROOT = pathlib.Path(__file__).parents[2]
TESTS = (
    "tests/core",
    "tests/exhaustive",
    "tests/controller",
    "tests/sim/test_controller.py",
    "tests/kube",
    "tests/admission",
    "tests/fuzz",
)
LONGEST = 300.0


def planted(mutant: Mutant, folder: pathlib.Path) -> None:
    """Change the module in this copy. Raises ValueError when its text is no longer there."""
    module = folder / "src" / "assetlock" / mutant.module
    text = module.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"mutant {mutant.name!r} does not fit {mutant.module} any more")
    module.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def found_by(mutant: Mutant | None) -> str | None:
    """The first test that fails with the mutant, or with none planted; ``None`` when all pass."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("src", "tests", "manifests", "crds", "docs"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        if mutant is not None:
            planted(mutant, folder)
        try:
            done = _tested(folder)
        except subprocess.TimeoutExpired:
            return f"no end in {LONGEST:.0f} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed.group(1) if failed else f"exit code {done.returncode}"


def _tested(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def main() -> int:
    """Try all of them, once it is sure that the tests pass as long as nothing is planted."""
    if (broken := found_by(None)) is not None:
        print(f"the tests fail without any mutant: {broken}", file=sys.stderr)
        return 2
    table = Table("mutant", "module", "found by", "seconds")
    survivors = 0
    for mutant in MUTANTS:
        began = time.monotonic()
        found = found_by(mutant)
        survivors += found is None
        table.add_row(mutant.name, mutant.module, found or "NOBODY", f"{time.monotonic() - began:.1f}")
        print(f"{mutant.name}: {found or 'SURVIVED'}", file=sys.stderr, flush=True)
    Console(width=160).print(table)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
