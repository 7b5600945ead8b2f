"""Makes the writes that were decided on, each only if what it was decided from is so.

What went wrong is read again and never guessed: after a conflict, and after a write whose answer was lost, the
object is fetched before the next decision, so a write that did commit is recognised, and none is repeated blindly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from assetlock.controller import metrics
from assetlock.controller.cache.cache import Cache
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey, Concerned, Key, LineKey, LockKey
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile.stuck_writes import PATIENCE, StuckWrites
from assetlock.controller.targets.objects import Raw
from assetlock.controller.targets.targets import Targets
from assetlock.core import names
from assetlock.core.decision import (
    AnnounceOnLease,
    Confirmation,
    ConfirmLease,
    ConfirmLock,
    ConfirmLockGone,
    ConfirmNoTarget,
    ConfirmPod,
    CreateLease,
    CreateLock,
    DeleteLease,
    DeleteLock,
    Event,
    PatchNamespace,
    PatchTarget,
    ReplaceLease,
    Write,
    WriteAssetStatus,
    WriteLockStatus,
    subject_of,
)
from assetlock.core.stuck import Stuck, Subject
from assetlock.kube.api import Api
from assetlock.kube.errors import AlreadyExists, ApiError, Conflict, KubeError, NotFound, OutcomeUnknown
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES
from assetlock.model.asset import Target

log = logging.getLogger(__name__)


class Publisher(Protocol):
    """Publishes what happened; never raises and never waits."""

    def tell(self, namespace: str, happening: Event) -> None:
        """Publish one happening."""
        ...


class NothingChanged(Exception):
    """A write that was decided on left the object as it was: to decide the same again at once would never end."""


def log_write(key: Key, write: Write) -> None:
    """Leave a line in the log for a write that was made."""
    log.info("wrote", extra={"asset": str(key), "write": _name(write)})


class Writer:
    """Confirms and writes. ``changed`` is told whom else it concerns, but for who has it done."""

    def __init__(
        self,
        api: Api,
        cache: Cache,
        targets: Targets,
        namespaces: Namespaces,
        pods: Pods,
        clock: Clock,
        publisher: Publisher,
        *,
        changed: Callable[[Concerned], None],
        wrote: Callable[[Key, Write], None] = log_write,
        stuck: StuckWrites | None = None,
    ) -> None:
        self._api = api
        self._cache = cache
        self._targets = targets
        self._namespaces = namespaces
        self._pods = pods
        self._clock = clock
        self._publisher = publisher
        self._changed = changed
        self._wrote = wrote
        self._stuck = stuck
        self._late: set[asyncio.Task[None]] = set()

    async def confirm(self, key: Key, confirmations: Iterable[Confirmation]) -> bool:
        """Whether all of this is so at the API server; what is not is known from then on."""
        for confirmation in confirmations:
            if isinstance(confirmation, ConfirmLease):
                live = await self._refresh(key, "Lease", confirmation.name)
                holds = _version_of(live) == confirmation.resource_version
            elif isinstance(confirmation, ConfirmLockGone):
                holds = await self._is_gone(key, confirmation)
            elif isinstance(confirmation, ConfirmLock):
                live = await self._refresh(key, "AssetLock", confirmation.name)
                holds = _version_of(live) == confirmation.resource_version
            elif isinstance(confirmation, ConfirmPod):
                fate = await self._pods.read(confirmation.pod)
                holds = (fate.ended is not None) is confirmation.ended
            elif isinstance(confirmation, ConfirmNoTarget):
                holds = await self._refresh_target(key, confirmation.target) is None
            else:
                live = await self._refresh(key, "Asset", confirmation.name or key.name)
                holds = _version_of(live) == confirmation.resource_version
            if not holds:
                return False
        return True

    async def _is_gone(self, key: Key, lock: ConfirmLockGone) -> bool:
        if self._cache.was_deleted(lock.uid):
            return True
        live = await self._refresh(key, "AssetLock", lock.name)
        return live is None or live["metadata"]["uid"] != lock.uid

    def stuck(self, key: Key) -> dict[Subject, Stuck]:
        """What can't be written now, of what may be decided on about this."""
        return self._stuck.of(key) if self._stuck else {}

    def recheck_at(self, key: Key) -> float | None:
        """When what is stuck is worth another try, on the monotonic clock."""
        return self._stuck.recheck_at(key) if self._stuck else None

    async def apply(self, key: Key, write: Write) -> bool:
        """Make one write; false when it did not take effect as decided, after reading what is there now.

        What fails is stuck for a while, and so is what has no answer soon: nobody waits for it, and it is decided
        again when the answer comes. Without a place to note that, a failure is raised.
        """
        subject = subject_of(write, key.namespace)
        if subject in self.stuck(key):
            return False
        if self._stuck and self._stuck.hang(subject):
            self._stuck.failed(
                key, subject, f"other writes of {subject.kind} in its namespace have no answer"
            )
            return False
        sending = asyncio.create_task(self._send(key, write))
        if self._stuck is None:
            return await self._outcome(key, write, sending)
        try:
            answered, _ = await asyncio.wait({sending}, timeout=PATIENCE)
        except asyncio.CancelledError:
            sending.cancel()
            raise
        if answered:
            return await self._outcome(key, write, sending)
        self._stuck.unanswered(key, subject, f"the API server has not answered for {PATIENCE} s")
        late = asyncio.create_task(self._take_late(key, write, sending))
        self._late.add(late)
        late.add_done_callback(self._late.discard)
        return False

    async def abandon(self) -> None:
        """Wait for no answer any more."""
        for late in self._late:
            late.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)

    async def _take_late(self, key: Key, write: Write, sending: asyncio.Task[Raw | None]) -> None:
        try:
            await self._outcome(key, write, sending)
        except KubeError as error:
            log.warning("could not read again", extra={"asset": str(key), "why": str(error)})
        finally:
            sending.cancel()
            self._note_answer(subject_of(write, key.namespace))
            if isinstance(key, AssetKey | LockKey | LineKey):
                self._changed(key)

    async def _outcome(self, key: Key, write: Write, sending: asyncio.Task[Raw | None]) -> bool:
        try:
            new = await sending
        except KubeError as error:
            reason = (
                error.reason or str(error.status) if isinstance(error, ApiError) else type(error).__name__
            )
            metrics.FAILED_WRITES.labels(_name(write), reason).inc()
            log.info(
                "write did not go through",
                extra={"asset": str(key), "write": _name(write), "why": str(error)},
            )
            await self._after_failure(key, write, error)
            return False
        if new is not None and _version_of(new) == _decided_on(write):
            why = "the API server takes it and leaves the object as it was"
            if not await self._hinders(key, write, why):
                self._fail(
                    key, write, NothingChanged(f"{_name(write)} left {new['metadata']['name']} as it was")
                )
            return False
        metrics.WRITES.labels(_name(write)).inc()
        if self._stuck:
            self._stuck.made(subject_of(write, key.namespace))
        self._wrote(key, write)
        for happening in write.events:
            self._publisher.tell(key.namespace, happening)
        return True

    async def _after_failure(self, key: Key, write: Write, error: KubeError) -> None:
        """Read what is there now, where that may be something else; have it tried again, at once or later."""
        if isinstance(error, ApiError) and error.is_refusal and await self._hinders(key, write, str(error)):
            await self._read_again(key, write)
            return
        if isinstance(error, Conflict | AlreadyExists | NotFound | OutcomeUnknown):
            await self._read_again(key, write)
        in_the_way = isinstance(error, AlreadyExists) and not self._is_slot(key, write)
        # A Lease without our label may have the name: no lock, but in the way of one.
        if in_the_way or not isinstance(error, Conflict | AlreadyExists | NotFound):
            self._fail(key, write, error)

    def _fail(self, key: Key, write: Write, error: Exception) -> None:
        if self._stuck is None:
            if isinstance(error, OutcomeUnknown):
                return
            raise error
        self._stuck.failed(key, subject_of(write, key.namespace), error)

    def _note_answer(self, subject: Subject) -> None:
        if self._stuck:
            self._stuck.answered(subject)

    async def _hinders(self, key: Key, write: Write, why: str) -> bool:
        """Remember for a while what can't be fenced, if it is that which can't be written."""
        if isinstance(write, PatchTarget) and isinstance(key, AssetKey):
            target, stamp = write.target.target, names.stamp_key(key.name, key.namespace)
            what = f"{target.kind} {target.name} can't be stamped"
            if write.patch["metadata"].get("annotations", {}).get(stamp, "") is None:
                await self._targets.disown(stamp, write.target)
                what = (
                    f"the stamp of an ended lock stands against nobody, but can't be taken off {target.name}"
                )
            self._targets.problem(key, target, f"{what}: {why}")
            return True
        if isinstance(write, PatchNamespace):
            name = write.namespace.name
            self._namespaces.problem(name, f"namespace {name} can't be guarded: {why}")
            return True
        return False

    async def _send(self, key: Key, write: Write) -> Raw | None:
        """Make the write, and take in what is there then; gives that, if the object was there before and still is."""
        namespace, new = key.namespace, None
        match write:
            case CreateLease(body=body):
                self._put(key, "Lease", await self._api.create(LEASES, namespace, body))
            case ReplaceLease(body=body):
                new = await self._api.replace(LEASES, namespace, body["metadata"]["name"], body)
                self._put(key, "Lease", new)
            case AnnounceOnLease(name=lease, patch=patch):
                new = await self._api.merge_patch(LEASES, namespace, lease, patch)
                self._put(key, "Lease", new)
            case DeleteLease(name=lease, uid=uid, resource_version=version):
                await self._api.delete(LEASES, namespace, lease, uid=uid, resource_version=version)
                self._gone(key, "Lease", namespace, lease, version)
            case CreateLock(body=body):
                self._put(key, "AssetLock", await self._api.create(ASSETLOCKS, namespace, body))
            case DeleteLock(name=name, uid=uid, resource_version=version):
                await self._api.delete(ASSETLOCKS, namespace, name, uid=uid, resource_version=version)
                self._gone(key, "AssetLock", namespace, name, version)
            case WriteAssetStatus(body=body):
                new = await self._api.replace_status(ASSETS, namespace, body["metadata"]["name"], body)
                self._put(key, "Asset", new)
            case WriteLockStatus(body=body):
                new = await self._api.replace_status(ASSETLOCKS, namespace, body["metadata"]["name"], body)
                self._put(key, "AssetLock", new)
            case PatchTarget(target=observed, patch=patch):
                target = observed.target
                resource = self._targets.resource_of(target)
                place = self._targets.place_of(target, namespace)
                new = await self._api.merge_patch(resource, place, target.name or "", patch)
                self._targets.put(target, place, new, by=key if isinstance(key, AssetKey) else None)
            case PatchNamespace(namespace=space, patch=patch):
                new = await self._namespaces.patch(space, patch)
        return new

    async def _read_again(self, key: Key, write: Write) -> None:
        match write:
            case CreateLease(body=body) | ReplaceLease(body=body):
                await self._refresh(key, "Lease", body["metadata"]["name"])
            case AnnounceOnLease(name=name) | DeleteLease(name=name):
                await self._refresh(key, "Lease", name)
            case WriteAssetStatus(body=body):
                await self._refresh(key, "Asset", body["metadata"]["name"])
            case WriteLockStatus(body=body) | CreateLock(body=body):
                await self._refresh(key, "AssetLock", body["metadata"]["name"])
            case DeleteLock(name=name):
                await self._refresh(key, "AssetLock", name)
            case PatchTarget(target=observed):
                await self._refresh_target(key, observed.target)
            case PatchNamespace(namespace=space):
                await self._namespaces.read_again(space)

    async def _refresh(self, key: Key, kind: str, name: str) -> Raw | None:
        namespace = key.namespace
        resource = {"Lease": LEASES, "Asset": ASSETS, "AssetLock": ASSETLOCKS}[kind]
        known = self._cache.version(kind, namespace, name)
        try:
            live = await self._api.get(resource, namespace, name)
        except NotFound:
            self._tell_others(key, self._cache.vanished(kind, namespace, name, known))
            return None
        self._put(key, kind, live)
        return live

    async def _refresh_target(self, key: Key, target: Target) -> Raw | None:
        resource = self._targets.resource_of(target)
        place = self._targets.place_of(target, key.namespace)
        try:
            live = await self._api.get(resource, place, target.name or "", metadata_only=True)
        except NotFound as error:
            if error.is_of_kind:
                self._targets.not_served(target)
                raise
            live = None
        self._targets.put(target, place, live)
        return live

    def _is_slot(self, key: Key, write: Write) -> bool:
        """Whether the Lease that was to be created is there and is a slot of an asset."""
        if not isinstance(write, CreateLease):
            return False
        return self._cache.leases.get(key.namespace, write.body["metadata"]["name"]) is not None

    def _put(self, key: Key, kind: str, raw: Raw) -> None:
        self._tell_others(key, self._cache.put({**raw, "kind": kind}, self._clock.monotonic()))

    def _gone(self, key: Key, kind: str, namespace: str, name: str, version: str) -> None:
        metadata = {"namespace": namespace, "name": name, "resourceVersion": version}
        self._tell_others(key, self._cache.remove({"kind": kind, "metadata": metadata}))

    def _tell_others(self, key: Key, concerned: set[Concerned]) -> None:
        """The watch brings nothing new of what is known from here, so whoever else it concerns is told from here."""
        for other in (each for each in concerned if each != key):
            self._changed(other)


def _version_of(live: Raw | None) -> str | None:
    return live["metadata"]["resourceVersion"] if live else None


def _decided_on(write: Write) -> str | None:
    """The version that a write replaces; ``None`` where it makes an object, or ends one."""
    match write:
        case ReplaceLease(body=body) | WriteAssetStatus(body=body) | WriteLockStatus(body=body):
            return str(body["metadata"]["resourceVersion"])
        case AnnounceOnLease(patch=patch) | PatchTarget(patch=patch) | PatchNamespace(patch=patch):
            return str(patch["metadata"]["resourceVersion"])
        case _:
            return None


def _name(write: Write) -> str:
    return type(write).__name__
