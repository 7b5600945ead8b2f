"""Lengths of time as callers give them: seconds, a timedelta, or text like ``30m`` and ``PT30M``."""

from __future__ import annotations

import datetime
import math

Span = float | datetime.timedelta | str

TTL: float = 1800.0
"""How long a lock lasts without being renewed, in seconds."""

WAIT: float = 1800.0
"""How long to wait for it, in seconds."""


def seconds(span: Span, what: str) -> float:
    """The span in seconds; ValueError if it is negative or no length of time."""
    if isinstance(span, str):
        from assetlock.model.durations import parse_duration

        return parse_duration(span).total_seconds()
    value = span.total_seconds() if isinstance(span, datetime.timedelta) else float(span)
    if math.isnan(value) or value < 0:
        raise ValueError(f"{what} is a length of time, not {span!r}")
    return value


def ttl_seconds(span: Span) -> float:
    """A ttl, which is finite and not zero."""
    value = seconds(span, "ttl")
    if not 0 < value < math.inf:
        raise ValueError(
            f"ttl is a length of time that ends, not {span!r}: the lock is renewed while it is held"
        )
    return value
