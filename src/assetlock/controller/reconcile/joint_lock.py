"""Takes the assets of locks over several of them, gives them back, and shows how far each lock has come."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from assetlock.controller.cache.cache import Cache
from assetlock.controller.cache.observer import Observer
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey, LockKey
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile.loop import ReconcileLoop
from assetlock.controller.reconcile.writer import Writer
from assetlock.core.decision import Decision
from assetlock.core.joint.decide import JointView, decide_together
from assetlock.core.locks import queue
from assetlock.core.locks.lock import assets_of, is_choosing, is_joint
from assetlock.core.stuck import Stuck, Subject


class JointLockReconciler:
    """Decides about locks over several assets what is not decided about each of the assets."""

    def __init__(self, cache: Cache, observer: Observer, writer: Writer, pods: Pods, clock: Clock) -> None:
        self._cache = cache
        self._observer = observer
        self._pods = pods
        self._clock = clock
        self._loop: ReconcileLoop[LockKey] = ReconcileLoop(writer, clock)

    async def reconcile(self, key: LockKey) -> float | None:
        """Do all that is to be done for the lock now.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises ApiError when
        the API server did not do its part; the caller tries again later.
        """

        async def decided(stuck: Mapping[Subject, Stuck]) -> Decision | None:
            view = self._view(key, stuck)
            return decide_together(view) if view is not None else None

        return await self._loop.play(key, decided)

    def _view(self, key: LockKey, stuck: Mapping[Subject, Stuck]) -> JointView | None:
        lock = self._cache.locks.get(key.namespace, key.name)
        if lock is None or not is_joint(lock):
            self._pods.observe(key, ())
            return None
        pods = self._pods.observe(key, queue.pods_to_watch([lock], ()))
        choosing = is_choosing(lock) and not queue.has_ended(lock)
        names = self._cache.selected_by(lock) if choosing else assets_of(lock)
        observations = tuple(
            dataclasses.replace(
                self._observer.observe(AssetKey(key.namespace, name), [lock.metadata.uid]), stuck=stuck
            )
            for name in names
        )
        return JointView(self._clock.now(), key.namespace, lock, observations, pods)
