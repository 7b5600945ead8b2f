"""Brings one asset after another to where it should be: what is observed of it, and what is decided from that."""

from __future__ import annotations

import dataclasses

from assetlock.controller.cache.cache import Cache
from assetlock.controller.cache.observer import Observing
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile.loop import Rounds
from assetlock.controller.reconcile.writer import Writing
from assetlock.controller.target_rights import Permits
from assetlock.controller.targets.targets import Targets
from assetlock.core.decide import decide
from assetlock.core.decision import Decision
from assetlock.core.locks import queue
from assetlock.core.observation import Observation


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
        self._targets = targets
        self._namespaces = namespaces
        self._pods = pods
        self._permits = permits
        self._rounds: Rounds[AssetKey] = Rounds(writing, clock)

    async def reconcile(self, key: AssetKey) -> float | None:
        """Do all that is to be done for the asset now.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises ApiError when
        the API server did not do its part; the caller tries again later.
        """

        async def decided() -> Decision:
            return decide(await self._observe(key))

        again = await self._rounds.play(key, decided)
        # What could not be fenced is worth another try in a while, and rights are to be asked for again.
        rechecks = (each.recheck_at(key) for each in (self._targets, self._namespaces, self._permits))
        return min((moment for moment in (again, *rechecks) if moment is not None), default=None)

    async def _observe(self, key: AssetKey) -> Observation:
        asset = self._cache.assets.get(key.namespace, key.name)
        targets = await self._targets.observe(key, asset)
        namespaces = await self._namespaces.observe(key, asset)
        known = self._observing.observe(key)
        return dataclasses.replace(
            known,
            targets=targets,
            namespaces=namespaces,
            pods=self._pods.observe(key, queue.pods_to_watch(known.locks, [o.lease for o in known.leases])),
            denied=self._permits.denied(key, asset),
        )
