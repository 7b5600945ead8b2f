"""Brings one asset after another to where it should be: what is observed of it, and what is decided from that."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from assetlock.controller.cache.cache import Cache
from assetlock.controller.cache.observer import Observer
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile.looking import Looking
from assetlock.controller.reconcile.loop import ReconcileLoop
from assetlock.controller.reconcile.writer import Writer
from assetlock.controller.target_rights import TargetRights
from assetlock.controller.targets.targets import Targets
from assetlock.core.decide import decide
from assetlock.core.decision import Decision
from assetlock.core.locks import queue
from assetlock.core.observation import Observation
from assetlock.core.stuck import Stuck, Subject


class AssetReconciler:
    """Brings one asset after another to where its Leases and AssetLocks say it should be."""

    def __init__(
        self,
        cache: Cache,
        observer: Observer,
        writer: Writer,
        looking: Looking,
        targets: Targets,
        namespaces: Namespaces,
        pods: Pods,
        target_rights: TargetRights,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._observer = observer
        self._targets = targets
        self._namespaces = namespaces
        self._pods = pods
        self._target_rights = target_rights
        self._looking = looking
        self._writer = writer
        self._loop: ReconcileLoop[AssetKey] = ReconcileLoop(writer, clock)

    async def reconcile(self, key: AssetKey) -> float | None:
        """Do all that is to be done for the asset now.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises ApiError when
        the API server did not do its part; the caller tries again later.
        """
        if ("Asset", key.namespace, key.name) in self._cache.unreadable:
            return None  # It is there, so nothing may be decided as if it were not.

        async def decided(stuck: Mapping[Subject, Stuck]) -> Decision:
            return decide(await self._observe(key, stuck))

        again = await self._loop.play(key, decided)
        # What could not be fenced is worth another try in a while, and rights are to be asked for again.
        rechecks = (each.recheck_at(key) for each in (self._targets, self._namespaces, self._target_rights))
        return min((moment for moment in (again, *rechecks) if moment is not None), default=None)

    async def _observe(self, key: AssetKey, stuck: Mapping[Subject, Stuck]) -> Observation:
        asset = self._cache.assets.get(key.namespace, key.name)
        seen = await self._looking.look(key, asset)
        if seen is None:
            stuck = self._writer.stuck(key)
        known = self._observer.observe(key)
        return dataclasses.replace(
            known,
            targets=seen.targets if seen else (),
            namespaces=seen.namespaces if seen else (),
            stuck=stuck,
            pods=self._pods.observe(key, queue.pods_to_watch(known.locks, [o.lease for o in known.leases])),
            denied=self._target_rights.denied(key, asset),
        )
