"""Observe one asset, decide, apply, and again until there is nothing to do.

What went wrong is read again and never guessed: after a conflict, and after a write whose answer was lost, the
object is fetched before the next decision, so a write that did commit is recognised, and none is repeated blindly.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from assetlock.controller.cache import AssetKey, Cache
from assetlock.controller.clock import Clock
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.permits import Permits
from assetlock.controller.pods import Pods
from assetlock.controller.targets import Targets, explain
from assetlock.core import queue
from assetlock.core.decide import decide
from assetlock.core.decision import (
    AnnounceOnLease,
    Confirmation,
    ConfirmLease,
    ConfirmLockGone,
    ConfirmPod,
    CreateLease,
    CreateLock,
    DeleteLease,
    DeleteLock,
    Happening,
    PatchNamespace,
    PatchTarget,
    ReplaceLease,
    Write,
    WriteAssetStatus,
    WriteLockStatus,
)
from assetlock.core.observation import Limits, Observation, ObservedLease, Revocation
from assetlock.kube.api import Api
from assetlock.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
    OutcomeUnknown,
)
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES
from assetlock.model.asset import Target

MOST_ROUNDS = 50
"""So many decisions in a row for one asset, then others get their turn."""

LEISURE = 1.0
"""Seconds between two rounds of writes that only show things, for one asset."""

LATE = 0.001
"""Seconds after a deadline at which it is looked at."""

log = logging.getLogger(__name__)


class Teller(Protocol):
    """Publishes what happened; never raises and never waits."""

    def tell(self, namespace: str, happening: Happening) -> None:
        """Publish one happening."""
        ...


def log_write(key: AssetKey, write: Write) -> None:
    """Leave a line in the log for a write that was made."""
    log.info("wrote", extra={"asset": str(key), "write": _name(write)})


class Reconciler:
    """Brings one asset after another to where its Leases and AssetLocks say it should be."""

    def __init__(
        self,
        api: Api,
        cache: Cache,
        targets: Targets,
        namespaces: Namespaces,
        pods: Pods,
        permits: Permits,
        clock: Clock,
        teller: Teller,
        limits: Limits,
        *,
        revocation: Revocation | None = None,
        wrote: Callable[[AssetKey, Write], None] = log_write,
    ) -> None:
        self._api = api
        self._cache = cache
        self._targets = targets
        self._namespaces = namespaces
        self._pods = pods
        self._permits = permits
        self._clock = clock
        self._teller = teller
        self._limits = limits
        self._revocation = revocation
        self._wrote = wrote
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
            if not await self._confirm(key, decision.confirm):
                continue
            for write in decision.writes:
                if not await self._apply(key, write):
                    break
            if decision.leisurely:
                self._shown_at[key] = self._clock.monotonic()
        return self._clock.monotonic()

    async def _observe(self, key: AssetKey) -> Observation:
        asset = self._cache.assets.get(key.namespace, key.name)
        targets = await self._targets.observe(key, asset)
        namespaces = await self._namespaces.observe(key, asset)
        locks, leases = self._cache.locks_of(key), self._cache.leases_of(key)
        pods = self._pods.observe(key, queue.pods_to_watch(locks, [seen.lease for seen in leases]))
        now, monotonic = self._clock.now(), self._clock.monotonic()

        def time_of_day(at: float) -> datetime.datetime:
            """As the wall clock would have shown it, had it always been as now: setting it makes nothing young."""
            return now - datetime.timedelta(seconds=monotonic - at)

        return Observation(
            now=now,
            namespace=key.namespace,
            name=key.name,
            asset=self._cache.assets.get(key.namespace, key.name),
            locks=locks,
            leases=tuple(ObservedLease(slot, lease, time_of_day(seen)) for slot, lease, seen in leases),
            locks_seen={uid: time_of_day(at) for uid, at in self._cache.locks_seen(key).items()},
            targets=targets,
            namespaces=namespaces,
            pods=pods,
            denied=self._permits.denied(key, asset),
            windows=self._cache.windows_of(key),
            limits=self._limits,
            revocation=self._revocation,
        )

    async def _confirm(self, key: AssetKey, confirmations: Iterable[Confirmation]) -> bool:
        for confirmation in confirmations:
            if isinstance(confirmation, ConfirmLease):
                live = await self._refresh("Lease", key.namespace, confirmation.name)
                holds = _version_of(live) == confirmation.resource_version
            elif isinstance(confirmation, ConfirmLockGone):
                holds = await self._is_gone(key, confirmation)
            elif isinstance(confirmation, ConfirmPod):
                fate = await self._pods.read(confirmation.pod)
                holds = (fate.ended is not None) is confirmation.ended
            else:
                live = await self._refresh("Asset", key.namespace, key.name)
                holds = _version_of(live) == confirmation.resource_version
            if not holds:
                return False
        return True

    async def _is_gone(self, key: AssetKey, lock: ConfirmLockGone) -> bool:
        if self._cache.was_deleted(lock.uid):
            return True
        live = await self._refresh("AssetLock", key.namespace, lock.name)
        return live is None or live["metadata"]["uid"] != lock.uid

    async def _apply(self, key: AssetKey, write: Write) -> bool:
        """Make one write; false when it did not take effect as decided, after reading what is there now."""
        try:
            await self._send(key, write)
        except (Conflict, AlreadyExists, NotFound, OutcomeUnknown) as error:
            log.info(
                "write did not go through",
                extra={"asset": str(key), "write": _name(write), "why": str(error)},
            )
            await self._read_again(key, write)
            if isinstance(error, AlreadyExists) and not self._is_slot(key, write):
                raise  # A Lease without our label has the name: no lock, but in the way of one. Not at once again.
            return False
        except ApiError as error:
            if not error.is_refusal:
                raise
            if isinstance(write, PatchTarget):
                target = write.target.target
                self._targets.problem(key, target, explain(error, target))
            elif isinstance(write, PatchNamespace):
                name = write.namespace.name
                self._namespaces.problem(name, f"namespace {name} can't be guarded: {error}")
            else:
                raise
            await self._read_again(key, write)
            return False
        self._wrote(key, write)
        for happening in write.tells:
            self._teller.tell(key.namespace, happening)
        return True

    async def _send(self, key: AssetKey, write: Write) -> None:
        namespace = key.namespace
        match write:
            case CreateLease(body=body):
                self._put("Lease", await self._api.create(LEASES, namespace, body))
            case ReplaceLease(body=body):
                lease = body["metadata"]["name"]
                self._put("Lease", await self._api.replace(LEASES, namespace, lease, body))
            case AnnounceOnLease(name=lease, patch=patch):
                self._put("Lease", await self._api.merge_patch(LEASES, namespace, lease, patch))
            case DeleteLease(name=lease, uid=uid, resource_version=version):
                await self._api.delete(LEASES, namespace, lease, uid=uid, resource_version=version)
                self._gone("Lease", namespace, lease, version)
            case CreateLock(body=body):
                self._put("AssetLock", await self._api.create(ASSETLOCKS, namespace, body))
            case DeleteLock(name=name, uid=uid, resource_version=version):
                await self._api.delete(ASSETLOCKS, namespace, name, uid=uid, resource_version=version)
                self._gone("AssetLock", namespace, name, version)
            case WriteAssetStatus(body=body):
                name = body["metadata"]["name"]
                new = await self._api.replace(ASSETS, namespace, name, body, subresource="status")
                self._put("Asset", new)
            case WriteLockStatus(body=body):
                name = body["metadata"]["name"]
                new = await self._api.replace(ASSETLOCKS, namespace, name, body, subresource="status")
                self._put("AssetLock", new)
            case PatchTarget(target=observed, patch=patch):
                target = observed.target
                resource = self._targets.resource_of(target)
                place = self._targets.place_of(target, namespace)
                new = await self._api.merge_patch(resource, place, target.name or "", patch)
                self._targets.put(target, place, new)
            case PatchNamespace(namespace=space, patch=patch):
                await self._namespaces.patch(space, patch)

    async def _read_again(self, key: AssetKey, write: Write) -> None:
        match write:
            case CreateLease(body=body) | ReplaceLease(body=body):
                await self._refresh("Lease", key.namespace, body["metadata"]["name"])
            case AnnounceOnLease(name=name) | DeleteLease(name=name):
                await self._refresh("Lease", key.namespace, name)
            case WriteAssetStatus():
                await self._refresh("Asset", key.namespace, key.name)
            case WriteLockStatus(body=body) | CreateLock(body=body):
                await self._refresh("AssetLock", key.namespace, body["metadata"]["name"])
            case DeleteLock(name=name):
                await self._refresh("AssetLock", key.namespace, name)
            case PatchTarget(target=observed):
                await self._refresh_target(key, observed.target)
            case PatchNamespace(namespace=space):
                await self._namespaces.read_again(space)

    async def _refresh(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        resource = {"Lease": LEASES, "Asset": ASSETS, "AssetLock": ASSETLOCKS}[kind]
        known = self._cache.version(kind, namespace, name)
        try:
            live = await self._api.get(resource, namespace, name)
        except NotFound:
            self._cache.vanished(kind, namespace, name, known)
            return None
        self._put(kind, live)
        return live

    async def _refresh_target(self, key: AssetKey, target: Target) -> None:
        resource = self._targets.resource_of(target)
        place = self._targets.place_of(target, key.namespace)
        try:
            live = await self._api.get(resource, place, target.name or "", metadata_only=True)
        except NotFound:
            live = None
        self._targets.put(target, place, live)

    def _is_slot(self, key: AssetKey, write: Write) -> bool:
        """Whether the Lease that was to be created is there and is a slot of the asset."""
        return isinstance(write, CreateLease) and any(
            seen.lease.metadata.name == write.body["metadata"]["name"] for seen in self._cache.leases_of(key)
        )

    def _put(self, kind: str, raw: dict[str, Any]) -> None:
        self._cache.put({**raw, "kind": kind}, self._clock.monotonic())

    def _gone(self, kind: str, namespace: str, name: str, version: str) -> None:
        metadata = {"namespace": namespace, "name": name, "resourceVersion": version}
        self._cache.remove({"kind": kind, "metadata": metadata})

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


def _version_of(live: dict[str, Any] | None) -> str | None:
    return live["metadata"]["resourceVersion"] if live else None


def _name(write: Write) -> str:
    return type(write).__name__
