"""Who may not be granted a lock, as maintenance windows close the asset now or before that lock would end."""

from __future__ import annotations

import functools

from assetlock.core.locks.ttl import effective_ttl
from assetlock.core.messages import shortened
from assetlock.core.observation import Observation
from assetlock.core.windows import window_locks
from assetlock.core.windows.closures import Closure, Closures
from assetlock.model.assetlock import AssetLock
from assetlock.model.times import format_time

Refusal = tuple[str, str]
"""Reason and message, ready to be read."""


class Gate:
    """The asset's windows at the moment of a decision. People's locks for maintenance pass it at any time."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self.closings = Closures(observation.asset, observation.windows)
        self.closure = self.closings.at(observation.now)

    @property
    def is_shut(self) -> bool:
        """Whether the asset is closed, and not passed by because somebody held it."""
        return self.closure is not None and not window_locks.skipped(self.closure, self._observation)

    @functools.cached_property
    def _following(self) -> Closure | None:
        """What closes the asset next."""
        return self.closings.next_closure(self._observation.now)

    def refusal(self, lock: AssetLock) -> Refusal | None:
        """Why the lock can't be granted now, and when that may change; ``None`` if it can."""
        if lock.spec.mode == "Maintenance":
            return None
        if self.closure is not None:
            return ("Maintenance", _closed(self.closure)) if self.is_shut else None
        following = self._following
        if following is None or following.since is None or not following.lead_time:
            return None
        now = self._observation.now
        asked = effective_ttl(lock, self._observation.asset, self._observation.limits)
        if now + asked <= following.since or now < following.since - following.lead_time:
            return None
        return "Maintenance", _too_late(following)


def _closed(closure: Closure) -> str:
    since = f" since {format_time(closure.since)}" if closure.since else ""
    return f"under maintenance by {names_of(closure)}{since}{_reason(closure)}; {_opens(closure)}"


def _too_late(closure: Closure) -> str:
    start = format_time(closure.since) if closure.since else ""
    return (
        f"its TTL would outlive {start}, when the asset is under maintenance by {names_of(closure)}"
        f"{_reason(closure)}; ask for less, or later: {_opens(closure)}"
    )


def _opens(closure: Closure) -> str:
    return (
        f"maintenance ends at {format_time(closure.until)}"
        if closure.until
        else "when maintenance ends is not known"
    )


def names_of(closure: Closure) -> str:
    """The first windows of a closure, for a message."""
    several = "windows" if len(closure.windows) > 1 else "window"
    return f"{several} {', '.join(window.metadata.name for window in closure.windows[:3])}"


def _reason(closure: Closure) -> str:
    return f" ({shortened(closure.reason)})" if closure.reason else ""
