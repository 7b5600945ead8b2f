"""Shows waiters far back about where in line they are. Nothing is granted or ended here.

It is done apart from decisions about the asset and within a budget of writes for all assets together, so that
showing never delays granting. New waiters come first. A waiter that is shown twice as far back as it is by now is
looked for in passes over the line, a part at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from assetlock.controller.cache.cache import Cache
from assetlock.controller.cache.observer import Observer
from assetlock.controller.clock import Clock, due
from assetlock.controller.keys import AssetKey, LineKey
from assetlock.controller.reconcile.writer import Writer
from assetlock.core.locks import queue
from assetlock.core.rules import refreshing
from assetlock.core.situation import Situation

WRITES_PER_SECOND = 100.0
AT_ONCE = 10
"""So many waiters of one asset are shown before another gets its turn."""

PASS_EVERY = 5.0
PART, PART_EVERY = 1_000, 0.2
"""So many places of a line are looked at in a pass, then others after so many seconds."""

PAUSE = 0.05
"""Seconds between two looks at waiters that are not shown any place yet."""

ASSET_AFTER = 1.0
"""Seconds after which the Asset says how many wait, unless somebody gives up before."""


class Budget:
    """Writes that may go out now: so many a second, and no more than that at once."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self._clock = clock
        self._rate = rate
        self._left = rate
        self._at = clock.monotonic()

    def take(self) -> bool:
        """Take one, if there is one."""
        now = self._clock.monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def refill(self) -> float:
        """In how many seconds there is one again."""
        return max(0.0, 1 - self._left) / self._rate


class LineReconciler:
    """Brings what waiters far back are shown up to date. ``look_at`` has their asset decided about in time."""

    def __init__(
        self,
        cache: Cache,
        observer: Observer,
        writer: Writer,
        clock: Clock,
        look_at: Callable[[AssetKey, float], None],
    ) -> None:
        self._cache = cache
        self._observer = observer
        self._writer = writer
        self._clock = clock
        self._look_at = look_at
        self._budget = Budget(clock, WRITES_PER_SECOND)
        self._passes: dict[LineKey, tuple[float, int]] = {}

    async def reconcile(self, key: LineKey) -> float | None:
        """Show some of the waiters where they are; gives when to go on, on the monotonic clock."""
        asset = AssetKey(key.namespace, key.name)
        line, now = self._cache.line(asset), self._clock.monotonic()
        if line.waiting <= queue.SHOWN:
            self._passes.pop(key, None)
            self._look_at(asset, now)
            return None
        again: float | None = now + PAUSE
        wanted = line.unshown(AT_ONCE)
        if not wanted:
            wanted, again = self._outdated(key)
        situation = Situation(self._observer.observe(asset, wanted))
        gives_up = due(self._clock, situation.observation.behind.next_deadline)
        self._look_at(asset, min(now + ASSET_AFTER, now + ASSET_AFTER if gives_up is None else gives_up))
        for write in refreshing.far_back(situation, wanted):
            if not self._budget.take():
                return self._clock.monotonic() + self._budget.refill
            if not await self._writer.apply(key, write):
                return self._clock.monotonic() + PART_EVERY
        return again

    def _outdated(self, key: LineKey) -> tuple[list[str], float | None]:
        """Of the next part of the line those that are shown far off, and when to go on with the pass."""
        line, now = self._cache.line(AssetKey(key.namespace, key.name)), self._clock.monotonic()
        began, place = self._passes.get(key, (float("-inf"), queue.SHOWN))
        if place == queue.SHOWN and now < began + PASS_EVERY:
            return [], began + PASS_EVERY
        began = now if place == queue.SHOWN else began
        found, following = line.outdated(range(place, place + PART), AT_ONCE)
        ended = following >= line.waiting
        self._passes[key] = (began, queue.SHOWN if ended else following)
        return found, None if ended else now + PART_EVERY
