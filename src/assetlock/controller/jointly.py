"""Takes the assets of locks over several of them, gives them back, and shows how far each lock has come."""

from __future__ import annotations

from assetlock.controller.cache import Cache
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey, LockKey
from assetlock.controller.observing import Observing
from assetlock.controller.pods import Pods
from assetlock.controller.reconciler import LATE, LEISURE, MOST_ROUNDS
from assetlock.controller.writing import Writing
from assetlock.core import joint, queue
from assetlock.core.together import JointView, decide_together


class Jointly:
    """Decides about locks over several assets what is not decided about each of the assets."""

    def __init__(
        self, cache: Cache, observing: Observing, writing: Writing, pods: Pods, clock: Clock
    ) -> None:
        self._cache = cache
        self._observing = observing
        self._writing = writing
        self._pods = pods
        self._clock = clock
        self._shown_at: dict[LockKey, float] = {}

    async def reconcile(self, key: LockKey) -> float | None:
        """Do all that is to be done for the lock now.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises ApiError when
        the API server did not do its part; the caller tries again later.
        """
        for _ in range(MOST_ROUNDS):
            view = self._view(key)
            if view is None:
                self._shown_at.pop(key, None)
                self._pods.observe(key, ())
                return None
            decision = decide_together(view)
            wake_at = None
            if decision.wake_at is not None:
                ahead = (decision.wake_at - view.now).total_seconds()
                wake_at = self._clock.monotonic() + max(0.0, ahead) + LATE
            if not decision.writes:
                return wake_at
            if decision.leisurely:
                due = self._shown_at.get(key, float("-inf")) + LEISURE
                if due > self._clock.monotonic():
                    return due if wake_at is None else min(due, wake_at)
                self._shown_at[key] = self._clock.monotonic()
            if await self._writing.confirm(key, decision.confirm):
                for write in decision.writes:
                    if not await self._writing.apply(key, write):
                        break
        return self._clock.monotonic()

    def _view(self, key: LockKey) -> JointView | None:
        lock = self._cache.locks.get(key.namespace, key.name)
        if lock is None or not joint.is_joint(lock):
            return None
        pods = self._pods.observe(key, queue.pods_to_watch([lock], ()))
        choosing = joint.is_choosing(lock) and not queue.has_ended(lock)
        names = self._cache.selected_by(lock) if choosing else joint.assets_of(lock)
        observations = tuple(self._observing.observe(AssetKey(key.namespace, name)) for name in names)
        return JointView(self._clock.now(), key.namespace, lock, observations, pods)
