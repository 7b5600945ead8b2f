"""Everything of the controller but where its events come from: cache, queue, workers, and whole lists.

Watches can miss things (kopf tells of no deletion that happened while it had to list anew), so whole lists are
taken at the start, whenever a watch had to begin again, and at intervals. Nothing is decided before the first.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from assetlock.controller.cache.cache import Cache
from assetlock.controller.cache.observer import Observer
from assetlock.controller.clock import Clock
from assetlock.controller.keys import DeadlocksKey, Key, LineKey, LockKey, WindowKey
from assetlock.controller.namespaces import Namespaces, needed_by
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile import deadlocks
from assetlock.controller.reconcile.asset import AssetReconciler
from assetlock.controller.reconcile.joint_lock import JointLockReconciler
from assetlock.controller.reconcile.line import LineReconciler
from assetlock.controller.reconcile.window import WindowReconciler
from assetlock.controller.reconcile.writer import Publisher, Writer
from assetlock.controller.target_rights import TargetRights
from assetlock.controller.targets.targets import Targets
from assetlock.controller.workqueue import WorkQueue
from assetlock.core import names
from assetlock.core.observation import Limits
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import ApiError, KubeError
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES, MAINTENANCE_WINDOWS

WORKERS = 16
RELIST_EVERY = 30.0
RELIST_RETRY = 1.0
STALE_AFTER = 90.0

SOONEST = 0.05
"""Seconds between two looks at one asset that only time asks for: a moment that is past for good costs no more."""

_IN_ORDER = ((LEASES, names.ASSET_LABEL), (ASSETLOCKS, ""), (MAINTENANCE_WINDOWS, ""), (ASSETS, ""))

log = logging.getLogger(__name__)


class Controller:
    """Reconciles while it runs; may be fed with events before and while it does."""

    def __init__(self, api: Api, clock: Clock, limits: Limits, publisher: Publisher) -> None:
        self._api = api
        self._clock = clock
        self._publisher = publisher
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        discovery = Discovery(api, clock=clock.monotonic)
        self._targets = Targets(api, discovery, clock, self._queue.add)
        self._namespaces = Namespaces(api, clock, self._queue.add)
        self._pods = Pods(api, clock, self._queue.add)
        self._target_rights = TargetRights(api, discovery, clock, self._queue.add)
        observer = Observer(self._cache, clock, limits)
        writer = Writer(
            api,
            self._cache,
            self._targets,
            self._namespaces,
            self._pods,
            clock,
            publisher,
            changed=self._queue.add,
        )
        self._reconciler = AssetReconciler(
            self._cache,
            observer,
            writer,
            self._targets,
            self._namespaces,
            self._pods,
            self._target_rights,
            clock,
        )
        self._joint_locks = JointLockReconciler(self._cache, observer, writer, self._pods, clock)
        self._deadlocks = deadlocks.DeadlockReconciler(self._cache, writer, clock)
        self._lines = LineReconciler(self._cache, observer, writer, clock, self._queue.add_at)
        self._windows = WindowReconciler(api, self._cache, clock)
        self._relist = asyncio.Event()
        self._listed_at: float | None = None

    def event(self, kind: str, event_type: str | None, raw: dict[str, Any]) -> None:
        """Take in a watch event; a type of ``None`` means that the watch is listing, again perhaps."""
        if event_type is None and self._listed_at is not None:
            self._relist.set()
        raw = {**raw, "kind": kind}
        deleted = event_type == "DELETED"
        for key in self._cache.remove(raw) if deleted else self._cache.put(raw, self._clock.monotonic()):
            self._queue.add(key)
        if kind == "AssetLock":
            self._look_for_deadlocks(raw["metadata"].get("namespace", ""))
        for window in self._cache.windows_touched_by(raw):
            self._queue.add(window)
        self._tell_of_unreadable()

    def _tell_of_unreadable(self) -> None:
        for namespace, event in self._cache.unreadable.take_untold():
            log.warning(
                "passed over", extra={"object": f"{event.kind} {namespace}/{event.name}", "why": event.note}
            )
            self._publisher.tell(namespace, event)

    def _look_for_deadlocks(self, namespace: str) -> None:
        self._queue.add_at(DeadlocksKey(namespace), self._clock.monotonic() + deadlocks.PAUSE)

    @property
    def fresh(self) -> bool:
        """Whether the cache was whole a short while ago: what readiness reports."""
        return self._listed_at is not None and self._clock.monotonic() - self._listed_at < STALE_AFTER

    async def run(self) -> None:
        """List, then reconcile until cancelled."""
        await self._list_until_done()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_listing())
                tasks.create_task(self._target_rights.run())
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
        finally:
            await self._targets.close()
            await self._namespaces.close()
            await self._pods.close()

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                again = await self._reconcile(key)
            except KubeError as error:
                log.warning("will try again", extra={"asset": str(key), "why": str(error)})
                wait = error.retry_after if isinstance(error, ApiError) else None
                self._queue.retry(key, wait or 0.0)
            except Exception:
                log.exception("could not reconcile", extra={"asset": str(key)})
                self._queue.retry(key)
            else:
                self._queue.succeeded(key)
                if again is not None:
                    self._queue.add_at(key, max(again, self._clock.monotonic() + SOONEST))
            finally:
                self._queue.done(key)

    async def _reconcile(self, key: Key) -> float | None:
        if isinstance(key, WindowKey):
            return await self._windows.reconcile(key)
        if isinstance(key, DeadlocksKey):
            return await self._deadlocks.reconcile(key)
        if isinstance(key, LineKey):
            return await self._lines.reconcile(key)
        if isinstance(key, LockKey):
            return await self._joint_locks.reconcile(key)
        return await self._reconciler.reconcile(key)

    async def _keep_listing(self) -> None:
        while True:
            try:
                async with asyncio.timeout(RELIST_EVERY):
                    await self._relist.wait()
            except TimeoutError:
                pass
            self._relist.clear()
            await self._list_until_done()

    async def _list_until_done(self) -> None:
        while True:
            try:
                await self._list()
            except KubeError as error:
                log.warning("could not list", extra={"why": str(error)})
                await asyncio.sleep(RELIST_RETRY)
            else:
                return

    async def _list(self) -> None:
        """First what is younger: a Lease names an AssetLock that is listed if it lives, and that a window."""
        for resource, selector in _IN_ORDER:
            found = await self._api.list(resource, label_selector=selector)
            version = int(found.resource_version)
            changed = self._cache.replace(resource.kind, found.items, version, self._clock.monotonic())
            self._tell_of_unreadable()
            if self._listed_at is not None:
                for key in changed:
                    self._queue.add(key)
        known = self._cache.known()
        if self._listed_at is None:
            for key in known:
                self._queue.add(key)
            for lock in self._cache.known_joint():
                self._queue.add(lock)
            for line in self._cache.known_lines():
                self._queue.add(line)
        for namespace in self._cache.namespaces():
            self._look_for_deadlocks(namespace)
        for window in self._cache.known_windows():
            self._queue.add(window)
        for what in (self._targets, self._namespaces, self._target_rights):
            what.retire(known)
        await self._targets.sweep()
        await self._namespaces.free(set().union(*map(needed_by, self._cache.assets)))
        self._listed_at = self._clock.monotonic()
