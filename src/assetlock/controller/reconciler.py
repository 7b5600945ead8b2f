"""Observe one asset, decide, apply, and again until there is nothing to do."""

from __future__ import annotations

import dataclasses
import datetime

from assetlock.controller.cache import Cache
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.observing import Observing
from assetlock.controller.permits import Permits
from assetlock.controller.pods import Pods
from assetlock.controller.targets import Targets
from assetlock.controller.writing import Writing
from assetlock.core import queue
from assetlock.core.decide import decide
from assetlock.core.observation import Observation

MOST_ROUNDS = 50
"""So many decisions in a row for one asset, then others get their turn."""

LEISURE = 1.0
"""Seconds between two rounds of writes that only show things, for one asset."""

LATE = 0.001
"""Seconds after a deadline at which it is looked at."""


class Reconciler:
    """Brings one asset after another to where its Leases and AssetLocks say it should be."""

    def __init__(
        self,
        cache: Cache,
        observing: Observing,
        writing: Writing,
        targets: Targets,
        namespaces: Namespaces,
        pods: Pods,
        permits: Permits,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._observing = observing
        self._writing = writing
        self._targets = targets
        self._namespaces = namespaces
        self._pods = pods
        self._permits = permits
        self._clock = clock
        self._shown_at: dict[AssetKey, float] = {}

    async def reconcile(self, key: AssetKey) -> float | None:
        """Do all that is to be done for the asset now.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises ApiError when
        the API server did not do its part; the caller tries again later.
        """
        for _ in range(MOST_ROUNDS):
            observation = await self._observe(key)
            decision = decide(observation)
            if decision.leisurely and (due := self._leisure_at(key)) is not None:
                return self._earliest(due, self._at(decision.wake_at), self._recheck_at(key))
            if not decision.writes:
                return self._earliest(self._at(decision.wake_at), self._recheck_at(key))
            if not await self._writing.confirm(key, decision.confirm):
                continue
            for write in decision.writes:
                if not await self._writing.apply(key, write):
                    break
            if decision.leisurely:
                self._shown_at[key] = self._clock.monotonic()
        return self._clock.monotonic()

    async def _observe(self, key: AssetKey) -> Observation:
        asset = self._cache.assets.get(key.namespace, key.name)
        targets = await self._targets.observe(key, asset)
        namespaces = await self._namespaces.observe(key, asset)
        locks, leases = self._cache.locks_of(key), self._cache.leases_of(key)
        return dataclasses.replace(
            self._observing.observe(key),
            targets=targets,
            namespaces=namespaces,
            pods=self._pods.observe(key, queue.pods_to_watch(locks, [seen.lease for seen in leases])),
            denied=self._permits.denied(key, asset),
        )

    def _leisure_at(self, key: AssetKey) -> float | None:
        """When the next leisurely round may go out; ``None`` for now."""
        due = self._shown_at.get(key, float("-inf")) + LEISURE
        return due if due > self._clock.monotonic() else None

    def _at(self, moment: datetime.datetime | None) -> float | None:
        """A time of day on the monotonic clock, a little late: a moment early there is nothing to do yet."""
        if moment is None:
            return None
        return self._clock.monotonic() + max(0.0, (moment - self._clock.now()).total_seconds()) + LATE

    def _recheck_at(self, key: AssetKey) -> float | None:
        """When what could not be fenced is worth another try, or rights are to be asked for again."""
        return self._earliest(
            self._targets.recheck_at(key), self._namespaces.recheck_at(key), self._permits.recheck_at(key)
        )

    @staticmethod
    def _earliest(*moments: float | None) -> float | None:
        return min((moment for moment in moments if moment is not None), default=None)
