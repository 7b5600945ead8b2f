"""The one place where the controller learns the time, so that a simulator can be asked instead."""

from __future__ import annotations

import asyncio
import datetime
from typing import Protocol

LATE = 0.001
"""Seconds after a deadline at which it is looked at."""


class Clock(Protocol):
    """Two clocks: one to compare with times in records, one to measure how long ago something was."""

    def now(self) -> datetime.datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...


class SystemClock:
    """The machine's clocks; the monotonic one is the event loop's, which also times its sleeps."""

    def now(self) -> datetime.datetime:
        """The time of day, in UTC."""
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        """The running event loop's time, in seconds."""
        return asyncio.get_running_loop().time()


def due(clock: Clock, moment: datetime.datetime | None) -> float | None:
    """A time of day on the monotonic clock, a little late: a moment early there is nothing to do yet."""
    if moment is None:
        return None
    return clock.monotonic() + max(0.0, (moment - clock.now()).total_seconds()) + LATE
