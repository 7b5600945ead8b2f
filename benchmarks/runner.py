"""Runs scenarios one after the other. Whatever goes wrong in one is a row, and the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from benchmarks.registry import Scenario
from benchmarks.rows import Failure, Row
from benchmarks.stage import Stage

MOST_SECONDS = 600.0
"""So long the whole takes at most, starting control planes included."""

_LEAST = 5.0
"""A scenario that has less time left than this is not begun."""

_STARTS_AND_STOPS = 15.0
"""What a control plane takes of the time that is left."""


def run(
    scenarios: Iterable[Scenario],
    stage: Callable[[], AbstractContextManager[Stage]],
    taken: list[Row | Failure],
    *,
    within: float = MOST_SECONDS,
) -> None:
    """Add what each scenario measures to ``taken``, and why one could not measure all that it was to."""
    ends = time.monotonic() + within
    for scenario in scenarios:
        left = ends - time.monotonic() - _STARTS_AND_STOPS
        if left < _LEAST:
            taken.append(Failure(scenario.name, f"not begun: the whole takes at most {within:.0f} s"))
            continue
        print(f"measuring: {scenario.name}", file=sys.stderr)
        try:
            with stage() as where:
                asyncio.run(_measure(scenario, where, taken, min(scenario.seconds, left)))
        except Exception as error:
            taken.append(Failure(scenario.name, _told(error)))


async def _measure(scenario: Scenario, stage: Stage, taken: list[Row | Failure], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds) as limit, contextlib.aclosing(scenario.measure(stage)) as rows:
            async for row in rows:
                taken.append(row)
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"took longer than {seconds:.0f} s") from None
        raise


def _told(error: BaseException) -> str:
    """What went wrong, without the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".rstrip(": ")
