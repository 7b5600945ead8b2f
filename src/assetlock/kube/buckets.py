"""A limit on how often something may happen per object: token buckets."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

_KEPT: int = 4096


class TokenBuckets:
    """Per key, `burst` at once and then one every `period` seconds. Remembers the keys used last."""

    def __init__(self, *, burst: int, period: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._period = period
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        """Whether it may happen once more now."""
        now = self._clock()
        tokens, since = self._buckets.pop(key, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) / self._period)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
        return allowed
