"""The clock that deadlines are measured with: it counts on while the machine sleeps, and nobody can set it."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", None) or time.CLOCK_MONOTONIC


def now() -> float:
    """Seconds since some moment. Linux stops `time.monotonic` during sleep; macOS does so with neither."""
    return time.clock_gettime(_CLOCK)
