"""Until when a lock is surely held, measured on the local clock. Pure.

The wall clocks of client and cluster are never compared. The operator's times are only subtracted from each other,
and tied to the local clock by a moment that was surely not later than theirs: when the request was sent that led to
them. So `until` is never later than the lock's real expiry, however slow the network is and however wrong a clock.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

SHORTEST_TTL: float = 10.0
"""Seconds below which a lock is not surely renewed in time: the operator shows a renewal within a second or two."""

LONGEST_MARGIN: float = 2.0

_PRECISION = 1.0
"""Statuses carry whole seconds, so the difference of two terms may be wrong by so much."""


class Term:
    """The term of a lock that is held. Times are seconds of `clock.now`."""

    def __init__(
        self, status: Mapping[str, Any], *, since: float, seen: float, length: float | None = None
    ) -> None:
        """``status`` is that of a Held lock. Its term began between the moments ``since`` and ``seen``.

        ``length`` is how long it is; without, it is the first one, which began when the lock was acquired.
        """
        self.expire_time: str = status["expireTime"]
        self._first = _seconds(self.expire_time)
        self.length = length or max(self._first - _seconds(status["acquireTime"]), 1.0)
        self._earliest = self.until = since + self.length
        self._latest = seen + self.length

    def renewed(self, status: Mapping[str, Any], sent: float) -> None:
        """Take note of a renewal that was sent then, and that this status confirms.

        The new term may be shorter than that, where the asset's maxHold or a maintenance window ends it. That shows
        in how far its end has moved.
        """
        moved = _seconds(status["expireTime"]) - self._first
        whole = self._latest + moved + _PRECISION >= sent + self.length
        until = sent + self.length if whole else self._earliest + moved - _PRECISION
        shorter = _seconds(status["expireTime"]) < _seconds(self.expire_time)
        self.until = until if shorter else max(self.until, until)
        self.expire_time = status["expireTime"]

    @property
    def margin(self) -> float:
        """How long before `until` nothing may be left that writes."""
        return min(LONGEST_MARGIN, self.length / 5)

    @property
    def deadline(self) -> float:
        """When the lock counts as lost unless it is renewed."""
        return self.until - self.margin

    @property
    def renews_every(self) -> float:
        """How long after one renewal the next is sent."""
        return self.length / 4

    @property
    def retries_every(self) -> float:
        """How long after a renewal that failed the next is sent."""
        return max(0.2, min(5.0, self.length / 20))


def _seconds(time: str) -> float:
    return datetime.datetime.fromisoformat(time).timestamp()
