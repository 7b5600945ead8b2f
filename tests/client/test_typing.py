"""The types that the client promises."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_a_typed_program_is_accepted_by_mypy_in_its_strict_mode() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "tests/client/typed.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "src" / "assetlock" / "py.typed").exists()
