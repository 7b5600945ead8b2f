"""Looks for deadlocks among the AssetLocks of a namespace."""

from __future__ import annotations

from assetlock.controller.cache.cache import Cache
from assetlock.controller.clock import Clock
from assetlock.controller.keys import DeadlocksKey
from assetlock.controller.reconcile.writer import Writer
from assetlock.core.deadlocks.decide import decide_waits

PAUSE = 0.2
"""Seconds after a change at which it is looked for them: many changes come at once."""

REST = 20.0
"""So many times as long as a search took it is not searched again: other work goes on."""


class DeadlockReconciler:
    """Has those give way who wait for themselves over others."""

    def __init__(self, cache: Cache, writer: Writer, clock: Clock) -> None:
        self._cache = cache
        self._writer = writer
        self._clock = clock
        self._rests_until = clock.monotonic()

    async def reconcile(self, key: DeadlocksKey) -> float | None:
        """End one deadlock, if there is one; gives when to look again, on the monotonic clock."""
        began = self._clock.monotonic()
        if began < self._rests_until:
            return self._rests_until
        locks = list(self._cache.suspects(key.namespace))
        if not locks:
            return None
        assets = (asset for asset in self._cache.assets if asset.metadata.namespace == key.namespace)
        decision = decide_waits(self._clock.now(), key.namespace, locks, assets)
        now = self._clock.monotonic()
        self._rests_until = now + REST * (now - began)
        if not decision.writes:
            return None
        if await self._writer.confirm(key, decision.confirm):
            for write in decision.writes:
                await self._writer.apply(key, write)
        return max(self._writer.recheck_at(key) or 0.0, self._clock.monotonic() + PAUSE)
