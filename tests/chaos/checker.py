"""The program that looks for an order in which a history makes sense (Porcupine), built once for its source."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Iterable
from typing import Any

from tests.chaos.history import Operation
from tests.go import program

SOURCE = pathlib.Path(__file__).parent / "checker"
_LONGEST = 600.0


def check(history: Iterable[Operation]) -> list[dict[str, Any]]:
    """For each asset whether its history is linearizable (``result`` is ``Ok``), and where it is not."""
    done = subprocess.run(
        [str(program(SOURCE, "assetlock.dev/tests/chaos/checker"))],
        input=json.dumps([operation.json() for operation in history]),
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    verdicts: list[dict[str, Any]] = json.loads(done.stdout)
    return verdicts
