"""What the cache knows of one asset, at this moment: the part of an observation that needs no other watches."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from assetlock.controller.cache.cache import Cache, SeenLease
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.core.observation import Limits, Observation, ObservedLease, Revocation


class Observer:
    """Observes assets from the cache, in the operator's own time."""

    def __init__(
        self, cache: Cache, clock: Clock, limits: Limits, *, revocation: Revocation | None = None
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._limits = limits
        self._revocation = revocation

    def observe(self, key: AssetKey, besides: Iterable[str] = ()) -> Observation:
        """The asset with its AssetLocks, Leases and windows, without targets, namespaces, pods and rights.

        ``besides`` are AssetLocks, by UID, that are looked at wherever in line they are.
        """
        cache, now, monotonic = self._cache, self._clock.now(), self._clock.monotonic()

        def time_of_day(at: float) -> datetime.datetime:
            """As the wall clock would have shown it, had it always been as now: setting it makes nothing young."""
            return now - datetime.timedelta(seconds=monotonic - at)

        def observed(leases: Iterable[SeenLease]) -> tuple[ObservedLease, ...]:
            return tuple(ObservedLease(slot, lease, time_of_day(seen)) for slot, lease, seen in leases)

        locks, behind = cache.locks_to_look_at(key, now, time_of_day, besides)
        return Observation(
            now=now,
            namespace=key.namespace,
            name=key.name,
            asset=cache.assets.get(key.namespace, key.name),
            locks=locks,
            behind=behind,
            leases=observed(cache.leases_of(key)),
            locks_seen={uid: time_of_day(at) for uid, at in cache.locks_seen(locks).items()},
            windows=cache.windows_of(key),
            limits=self._limits,
            elsewhere={uid: observed(found) for uid, found in cache.leases_elsewhere(key).items()},
            revocation=self._revocation,
        )
