"""Brings the status of maintenance windows up to date. Closing assets is decided with all else about an asset."""

from __future__ import annotations

from assetlock.controller.cache.cache import Cache
from assetlock.controller.clock import Clock, due
from assetlock.controller.keys import AssetKey, WindowKey
from assetlock.core.status import window as window_status
from assetlock.core.status.window import WindowView
from assetlock.core.windows.closures import concerned
from assetlock.core.windows.window_locks import is_windows
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, NotFound, OutcomeUnknown
from assetlock.kube.resources import MAINTENANCE_WINDOWS

LONGEST_SLEEP = 3600.0
"""Seconds after which it is looked at in any case: the wall clock may have been set."""


class WindowReconciler:
    """Shows of each window when it is active, and whether its assets are as it says."""

    def __init__(self, api: Api, cache: Cache, clock: Clock) -> None:
        self._api = api
        self._cache = cache
        self._clock = clock

    async def reconcile(self, key: WindowKey) -> float | None:
        """Write the window's status if it is not as it ought to be.

        Returns when to look again if nothing happens before, on the monotonic clock.
        """
        view = self._view(key)
        if view is None:
            return None
        body = window_status.body(view)
        if body is not None:
            try:
                new = await self._api.replace_status(MAINTENANCE_WINDOWS, key.namespace, key.name, body)
                self._cache.put({**new, "kind": "MaintenanceWindow"}, self._clock.monotonic())
            except (Conflict, NotFound):
                await self._read_again(key)
                return self._clock.monotonic()
            except OutcomeUnknown:
                await self._read_again(key)
                raise
        wake_at = due(self._clock, window_status.wake_at(view))
        return None if wake_at is None else min(wake_at, self._clock.monotonic() + LONGEST_SLEEP)

    def _view(self, key: WindowKey) -> WindowView | None:
        window = self._cache.windows.get(key.namespace, key.name)
        if window is None:
            return None
        assets = concerned(window, (a for a in self._cache.assets if a.metadata.namespace == key.namespace))
        locks = [
            lock
            for asset in assets
            for lock in self._cache.line(AssetKey(key.namespace, asset.metadata.name)).apart
            if is_windows(lock)
        ]
        return WindowView(self._clock.now(), window, assets, locks)

    async def _read_again(self, key: WindowKey) -> None:
        known = self._cache.version("MaintenanceWindow", key.namespace, key.name)
        try:
            live = await self._api.get(MAINTENANCE_WINDOWS, key.namespace, key.name)
        except NotFound:
            self._cache.vanished("MaintenanceWindow", key.namespace, key.name, known)
        else:
            self._cache.put({**live, "kind": "MaintenanceWindow"}, self._clock.monotonic())
