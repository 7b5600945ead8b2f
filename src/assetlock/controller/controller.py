"""Everything of the controller but where its events come from: cache, queue, workers, and whole lists.

Watches can miss things (kopf tells of no deletion that happened while it had to list anew), so whole lists are
taken at the start, whenever a watch had to begin again, and at intervals. Nothing is decided before the first, nor
while another process leads: what is known is kept up to date meanwhile, so that this one can begin at once.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import Iterable
from typing import Any, NoReturn

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
from assetlock.controller.reconcile.looking import Looking
from assetlock.controller.reconcile.stuck_writes import StuckWrites
from assetlock.controller.reconcile.window import WindowReconciler
from assetlock.controller.reconcile.writer import Publisher, Writer
from assetlock.controller.target_rights import TargetRights
from assetlock.controller.targets.targets import Targets
from assetlock.controller.workqueue import WorkQueue
from assetlock.core import names
from assetlock.core.observation import Limits
from assetlock.kube.api import Api, ObjectList
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import ApiError, KubeError
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES, MAINTENANCE_WINDOWS
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock

WORKERS = 32
WORKERS_A_NAMESPACE = 12
"""So many work at the same time on what is in one namespace, however much there is: the rest is for the others."""

A_PAGE = 200
AT_ONCE = 50
"""Objects that are taken in before others have their turn in the event loop."""

RELIST_EVERY = 30.0
RELIST_RETRY = 1.0
STALE_AFTER = 90.0

SOONEST = 0.05
"""Seconds between two looks at one asset that only time asks for: a moment that is past for good costs no more."""

_IN_ORDER = ((LEASES, names.ASSET_LABEL), (ASSETLOCKS, ""), (MAINTENANCE_WINDOWS, ""), (ASSETS, ""))

log = logging.getLogger(__name__)


class Controller:
    """Keeps what it knows up to date while it runs, and reconciles while it leads. May be fed with events before."""

    def __init__(self, api: Api, clock: Clock, limits: Limits, publisher: Publisher) -> None:
        self._api = api
        self._clock = clock
        self._publisher = publisher
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue(
            clock, group=lambda key: key.namespace, most_of_a_group=WORKERS_A_NAMESPACE
        )
        discovery = Discovery(api, clock=clock.monotonic)
        self._targets = Targets(api, discovery, clock, self._queue.add)
        self._namespaces = Namespaces(api, clock, self._queue.add)
        self._pods = Pods(api, clock, self._queue.add)
        self._target_rights = TargetRights(api, discovery, clock, self._queue.add)
        observer = Observer(self._cache, clock, limits)
        self._stuck = StuckWrites(clock)
        self._looking = Looking(self._targets, self._namespaces, self._stuck, self._queue.add)
        self._writer = writer = Writer(
            api,
            self._cache,
            self._targets,
            self._namespaces,
            self._pods,
            clock,
            publisher,
            changed=self._queue.add,
            stuck=self._stuck,
        )
        self._reconciler = AssetReconciler(
            self._cache,
            observer,
            writer,
            self._looking,
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
        self._leading, self._pausing = asyncio.Event(), asyncio.Event()
        self._listed, self._relist = asyncio.Event(), asyncio.Event()
        self._listed_at: float | None = None

    def event(self, kind: str, event_type: str | None, raw: dict[str, Any]) -> None:
        """Take in a watch event; a type of ``None`` means that the watch is listing, again perhaps."""
        if event_type is None and self._listed_at is not None:
            self._relist.set()
        raw = {**raw, "kind": kind}
        deleted = event_type == "DELETED"
        self._look_at(self._cache.remove(raw) if deleted else self._cache.put(raw, self._clock.monotonic()))
        if kind == "AssetLock":
            self._look_for_deadlocks(raw["metadata"].get("namespace", ""))
        self._look_at(self._cache.windows_touched_by(raw))
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
    def now(self) -> datetime.datetime:
        """The time of day that it decides by."""
        return self._clock.now()

    @property
    def assets(self) -> Iterable[Asset]:
        """Every asset that it knows."""
        return self._cache.assets

    @property
    def locks(self) -> Iterable[AssetLock]:
        """Every AssetLock that it knows."""
        return self._cache.locks

    @property
    def fresh(self) -> bool:
        """Whether the cache was whole a short while ago: what readiness reports."""
        return self._listed_at is not None and self._clock.monotonic() - self._listed_at < STALE_AFTER

    @property
    def queued(self) -> tuple[int, float]:
        """How much is to be looked at now, and for how many seconds the oldest of it has been."""
        return len(self._queue), self._queue.oldest()

    def lead(self, leads: bool) -> None:
        """Begin to reconcile, or pause."""
        on, off = (self._leading, self._pausing) if leads else (self._pausing, self._leading)
        off.clear()
        on.set()

    async def run(self) -> None:
        """Keep up to date, and reconcile while leading, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_listing())
                tasks.create_task(self._target_rights.run())
                tasks.create_task(self._reconcile_while_leading())
        finally:
            await self._targets.close()
            await self._namespaces.close()
            await self._pods.close()

    async def _reconcile_while_leading(self) -> NoReturn:
        await self._listed.wait()
        while True:
            await self._leading.wait()
            await self._look_at_all()
            workers = [asyncio.create_task(self._work()) for _ in range(WORKERS)]
            try:
                await self._pausing.wait()
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                self._looking.forget()
                await self._writer.abandon()
                self._stuck.forget()

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

    async def _keep_listing(self) -> NoReturn:
        while True:
            await self._list_until_done()
            await asyncio.sleep(RELIST_RETRY)
            try:
                async with asyncio.timeout(RELIST_EVERY):
                    await self._relist.wait()
            except TimeoutError:
                pass
            self._relist.clear()

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
            found = await self._api.list(resource, label_selector=selector, limit=A_PAGE)
            await self._take_in_all(resource.kind, found)
            self._tell_of_unreadable()
        known = self._cache.known()
        for what in (self._targets, self._namespaces, self._target_rights):
            await asyncio.sleep(0)
            what.retire(known)
        self._stuck.retire()
        if self._leading.is_set():
            await self._targets.sweep()
            await self._namespaces.free(set().union(*map(needed_by, self._cache.assets)))
        self._look_at_windows_and_deadlocks()
        self._listed_at = self._clock.monotonic()
        self._listed.set()

    async def _take_in_all(self, kind: str, found: ObjectList) -> None:
        """A few objects at a time, then what is not among them any more."""
        for first in range(0, len(found), AT_ONCE):
            for raw in found.items[first : first + AT_ONCE]:
                self._look_at(self._cache.put({**raw, "kind": kind}, self._clock.monotonic()))
            await asyncio.sleep(0)
        version = int(found.resource_version)
        await asyncio.sleep(0)
        self._look_at(self._cache.drop_missing(kind, found.items, version))

    def _look_at(self, keys: Iterable[Key]) -> None:
        """Whoever begins to lead looks at everything anyway."""
        if self._leading.is_set():
            for key in keys:
                self._queue.add(key)

    async def _look_at_all(self) -> None:
        """Of what was decided by another nothing is known, so everything is looked at."""
        known = self._cache.known()
        await asyncio.sleep(0)
        for key in known:
            self._queue.add(key)
        await asyncio.sleep(0)
        self._look_at(self._cache.known_joint())
        await asyncio.sleep(0)
        self._look_at(self._cache.known_lines())
        self._look_at_windows_and_deadlocks()

    def _look_at_windows_and_deadlocks(self) -> None:
        for namespace in self._cache.namespaces():
            self._look_for_deadlocks(namespace)
        self._look_at(self._cache.known_windows())
