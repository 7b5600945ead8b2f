"""Looks for deadlocks among the AssetLocks of a namespace."""

from __future__ import annotations

from assetlock.controller.cache.cache import Cache
from assetlock.controller.clock import Clock
from assetlock.controller.keys import DeadlocksKey
from assetlock.controller.reconcile.writer import Writer
from assetlock.core.deadlocks.decide import decide_waits

PAUSE = 0.2
"""Seconds after a change at which it is looked for them: many changes come at once."""


class DeadlockReconciler:
    """Has those give way who wait for themselves over others."""

    def __init__(self, cache: Cache, writer: Writer, clock: Clock) -> None:
        self._cache = cache
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: DeadlocksKey) -> float | None:
        """End one deadlock, if there is one; gives when to look again, on the monotonic clock."""
        locks = [lock for lock in self._cache.locks if lock.metadata.namespace == key.namespace]
        assets = (asset for asset in self._cache.assets if asset.metadata.namespace == key.namespace)
        decision = decide_waits(self._clock.now(), key.namespace, locks, assets)
        if not decision.writes:
            return None
        if await self._writer.confirm(key, decision.confirm):
            for write in decision.writes:
                await self._writer.apply(key, write)
        return self._clock.monotonic()
