"""All that is known of assets, and of their AssetLocks, Leases and windows, by asset.

Objects come from watches, from whole lists and from the answers to our own writes, in any order.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError

from assetlock.controller.cache.collection import Collection, version_of
from assetlock.controller.cache.lock_index import LockIndex
from assetlock.controller.cache.unreadable import UnreadableObjects
from assetlock.controller.keys import (
    AssetKey,
    Concerned,
    LineKey,
    LockKey,
    WindowKey,
    asset_key,
    keys_of,
    lock_key,
)
from assetlock.core import names
from assetlock.core.deadlocks.suspects import Suspects
from assetlock.core.locks import queue
from assetlock.core.locks.line import Line, TimeOfDay
from assetlock.core.locks.lock import acquisition_of, is_joint, lock_uid
from assetlock.core.observation import Behind
from assetlock.core.windows.closures import concerns
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.window import MaintenanceWindow


class SeenLease(NamedTuple):
    """The Lease of one of an asset's slots, and when its present term was first seen."""

    slot: int
    lease: Lease
    seen: float


class Cache:
    """All that is known of assets, and when it was first seen: on the monotonic clock, since the other may be set."""

    def __init__(self) -> None:
        self.assets = Collection(Asset)
        self.locks = Collection(AssetLock)
        self.leases = Collection(Lease)
        self.windows = Collection(MaintenanceWindow)
        self.unreadable = UnreadableObjects()
        self._index = LockIndex(self.assets)
        self._suspects: defaultdict[str, Suspects] = defaultdict(Suspects)
        self._locks_seen: dict[str, float] = {}
        self._locks_deleted: dict[str, int] = {}
        self._terms: dict[tuple[str, str], tuple[tuple[object, ...], float]] = {}
        self._slots: dict[AssetKey, dict[int, str]] = defaultdict(dict)

    def put(self, raw: dict[str, Any], now: float) -> set[Concerned]:
        """Take in a version of any of the kinds; gives the assets and locks that it changes something for.

        An object that can't be read is known as such, and otherwise as if there were none: it must not stop others.
        """
        try:
            changed = self._put(raw, now)
        except ValidationError as error:
            return self._note_unreadable(raw, error)
        self.unreadable.forget(raw)
        return changed

    def _note_unreadable(self, raw: dict[str, Any], error: ValidationError) -> set[Concerned]:
        meta = raw["metadata"]
        self.unreadable.note(raw, error)
        version = int(meta["resourceVersion"])
        return self._remove(raw["kind"], meta.get("namespace", ""), meta["name"], version)

    def _put(self, raw: dict[str, Any], now: float) -> set[Concerned]:
        kind = raw["kind"]
        if kind == "MaintenanceWindow":
            old_window, window = self.windows.put(raw)
            if window is old_window:
                return set()
            return self._with_joint(self._closed_by(old_window) | self._closed_by(window))
        if kind == "Asset":
            old_asset, asset = self.assets.put(raw)
            if asset is None or asset is old_asset:
                return set()
            concerned = self._with_joint({asset_key(asset)})
            if old_asset is None or old_asset.metadata.labels != asset.metadata.labels:
                concerned |= self._index.who_chooses(asset.metadata.namespace or "")
            return concerned
        if kind == "AssetLock":
            old_lock, lock = self.locks.put(raw)
            if lock is None or lock is old_lock:
                return set()
            self._locks_seen.setdefault(lock.metadata.uid, now)
            return self._change(old_lock, lock)
        if not _is_lock(raw["metadata"]):
            return self.remove(raw)
        old_lease, lease = self.leases.put(raw)
        if lease is None or lease is old_lease:
            return set()
        return self._with_joint(self._note_term(lease, now))

    def remove(self, raw: dict[str, Any]) -> set[Concerned]:
        """Take in that this very version was the object's last."""
        meta, version = raw["metadata"], int(raw["metadata"]["resourceVersion"])
        self.unreadable.forget(raw)
        if raw["kind"] == "AssetLock" and "uid" in meta:
            self._locks_deleted[meta["uid"]] = version
        return self._remove(raw["kind"], meta.get("namespace", ""), meta["name"], version)

    def was_deleted(self, uid: str) -> bool:
        """Whether the AssetLock with this UID was seen to be deleted lately. No other ever has its UID."""
        return uid in self._locks_deleted

    def version(self, kind: str, namespace: str, name: str) -> int:
        """The known resourceVersion of an object; -1 when none is known."""
        known = self._collection(kind).get(namespace, name)
        return version_of(known) if known else -1

    def vanished(self, kind: str, namespace: str, name: str, version: int) -> set[Concerned]:
        """Take in that a live read did not find an object that was known in ``version`` when it began."""
        return self._remove(kind, namespace, name, version)

    def replace(self, kind: str, raws: list[dict[str, Any]], version: int, now: float) -> set[Concerned]:
        """Take in a whole list, as of ``version``."""
        changed: set[Concerned] = set()
        for raw in raws:
            changed |= self.put({**raw, "kind": kind}, now)
        return changed | self.drop_missing(kind, raws, version)

    def drop_missing(self, kind: str, raws: list[dict[str, Any]], version: int) -> set[Concerned]:
        """Take in that nothing else was there than these, as of ``version``."""
        changed: set[Concerned] = set()
        self.unreadable.keep(kind, raws, version)
        for gone in self._collection(kind).missing_from(raws, version):
            changed |= self._remove(kind, gone.metadata.namespace or "", gone.metadata.name, version)
        if kind == "AssetLock":
            self._locks_deleted = {uid: at for uid, at in self._locks_deleted.items() if at > version}
        return changed

    def line(self, key: AssetKey) -> Line:
        """The AssetLocks that name this asset, or have chosen it."""
        return self._index.line(key)

    def locks_to_look_at(
        self, key: AssetKey, now: datetime.datetime, time_of_day: TimeOfDay, besides: Iterable[str] = ()
    ) -> tuple[tuple[AssetLock, ...], Behind]:
        """The AssetLocks that a decision about this asset needs, and what there is of others.

        They are the first in line, those that may choose it, those that have or had a Lease of it, and ``besides``.
        """
        asset, leases = self.assets.get(key.namespace, key.name), self.leases_of(key)
        having = [self._lock_with(key, seen.lease) for seen in leases]
        concerned = {lock.metadata.uid for lock in having if lock is not None} | {*besides}
        concerned |= {
            lock_uid(seen.lease.metadata.annotations.get(names.ACQUISITION_ANNOTATION, "")) for seen in leases
        }
        concerned |= {lock_uid(holder.acquisition) for holder in asset.status.holders} if asset else set()
        windows = bool(self.windows_of(key))
        locks, behind = self.line(key).look(now, time_of_day, concerned=concerned, each_ttl=windows)
        found = {lock.metadata.name: lock for lock in locks} | dict(self._index.may_choose(key))
        found |= {lock.metadata.name: lock for lock in having if lock is not None}
        return tuple(found.values()), behind

    def _lock_with(self, key: AssetKey, lease: Lease) -> AssetLock | None:
        """The AssetLock that a Lease says it is for."""
        return self.locks.get(key.namespace, lease.metadata.annotations.get(names.LOCK_ANNOTATION, ""))

    def selected_by(self, lock: AssetLock) -> list[str]:
        """The assets that a lock may choose, in order."""
        return self._index.selected_by(lock)

    def leases_elsewhere(self, key: AssetKey) -> dict[str, tuple[SeenLease, ...]]:
        """By acquisition, what locks over several assets that have this one have besides."""
        having = [self._lock_with(key, seen.lease) for seen in self.leases_of(key)]
        return {
            acquisition_of(lock): found
            for lock in having
            if lock is not None and is_joint(lock) and key in keys_of(lock) and not queue.has_ended(lock)
            if (found := self._leases_beside(key, lock))
        }

    def _leases_beside(self, key: AssetKey, lock: AssetLock) -> tuple[SeenLease, ...]:
        acquisition = acquisition_of(lock)
        return tuple(
            seen
            for other in keys_of(lock)
            if other != key
            for seen in self.leases_of(other)
            if seen.lease.metadata.annotations.get(names.ACQUISITION_ANNOTATION) == acquisition
        )

    def locks_seen(self, locks: Iterable[AssetLock]) -> dict[str, float]:
        """When each of these AssetLocks, which are known here, was first seen, by UID."""
        return {lock.metadata.uid: self._locks_seen[lock.metadata.uid] for lock in locks}

    def leases_of(self, key: AssetKey) -> tuple[SeenLease, ...]:
        """The Leases of the asset's slots, and when the present term of each was first seen."""
        return tuple(
            SeenLease(slot, lease, self._terms[key.namespace, name][1])
            for slot, name in sorted(self._slots.get(key, {}).items())
            if (lease := self.leases.get(key.namespace, name))
        )

    def known(self) -> set[AssetKey]:
        """Every asset that anything is known of."""
        return {asset_key(asset) for asset in self.assets} | self._index.assets() | set(self._slots)

    def known_lines(self) -> set[LineKey]:
        """Every asset for which some wait far back."""
        return {LineKey(*key) for key in self._index.assets() if self.line(key).waiting > queue.SHOWN}

    def known_joint(self) -> set[LockKey]:
        """Every lock over several assets."""
        return {lock_key(lock) for lock in self.locks if is_joint(lock)}

    def suspects(self, namespace: str) -> Suspects:
        """The AssetLocks there that may be in a deadlock."""
        return self._suspects[namespace]

    def namespaces(self) -> set[str]:
        """Where there are AssetLocks."""
        return {key.namespace for key in self._index.assets()}

    def windows_of(self, key: AssetKey) -> tuple[MaintenanceWindow, ...]:
        """The windows in the asset's namespace that are about it."""
        asset = self.assets.get(key.namespace, key.name)
        if asset is None:
            return ()
        return tuple(w for w in self.windows if w.metadata.namespace == key.namespace and concerns(w, asset))

    def windows_touched_by(self, raw: dict[str, Any]) -> set[WindowKey]:
        """The windows whose status an object may change: itself, that of its lock, those about an asset."""
        kind, meta = raw["kind"], raw["metadata"]
        namespace = meta.get("namespace", "")
        if kind == "MaintenanceWindow":
            return {WindowKey(namespace, meta["name"])}
        if kind == "AssetLock":
            window = meta.get("labels", {}).get(names.WINDOW_LABEL)
            return {WindowKey(namespace, window)} if window else set()
        if kind == "Asset":
            return {
                WindowKey(namespace, w.metadata.name)
                for w in self.windows
                if w.metadata.namespace == namespace
            }
        return set()

    def known_windows(self) -> set[WindowKey]:
        """Every window."""
        return {WindowKey(w.metadata.namespace or "", w.metadata.name) for w in self.windows}

    def _closed_by(self, window: MaintenanceWindow | None) -> set[AssetKey]:
        if window is None:
            return set()
        there = (a for a in self.assets if a.metadata.namespace == window.metadata.namespace)
        return {asset_key(asset) for asset in there if concerns(window, asset)}

    def _collection(self, kind: str) -> Collection[Any]:
        collections: dict[str, Collection[Any]] = {
            "Asset": self.assets,
            "AssetLock": self.locks,
            "Lease": self.leases,
            "MaintenanceWindow": self.windows,
        }
        return collections[kind]

    def _remove(self, kind: str, namespace: str, name: str, version: int) -> set[Concerned]:
        gone = self._collection(kind).remove(namespace, name, version)
        if gone is None:
            return set()
        if kind == "MaintenanceWindow":
            return self._with_joint(self._closed_by(gone))
        if kind == "Asset":
            return self._with_joint({asset_key(gone)}) | self._index.who_chooses(namespace)
        if kind == "AssetLock":
            self._locks_seen.pop(gone.metadata.uid, None)
            return self._change(gone, None)
        key, slot = _slot_of(gone)
        self._terms.pop((namespace, name), None)
        self._slots[key].pop(slot, None)
        if not self._slots[key]:
            del self._slots[key]
        return self._with_joint({key} | self._taken_together_with(gone))

    def _change(self, old: AssetLock | None, new: AssetLock | None) -> set[Concerned]:
        if old is not None:
            self._suspects[old.metadata.namespace or ""].discard(old.metadata.uid)
        if new is not None:
            self._suspects[new.metadata.namespace or ""].add(new)
        seen = self._locks_seen[new.metadata.uid] if new is not None else 0.0
        concerned = self._index.change(old, new, seen)
        keys = (key for key in concerned if isinstance(key, AssetKey))
        return concerned | self._index.concerned_by(keys, self._is_full)

    def _with_joint(self, keys: set[AssetKey]) -> set[Concerned]:
        """These, with the locks over several assets that a change of one of these may matter to."""
        return {*keys, *self._index.concerned_by(keys, self._is_full)}

    def _is_full(self, key: AssetKey) -> bool:
        """Whether somebody has each slot of the asset, even if his time is over."""
        asset = self.assets.get(key.namespace, key.name)
        taken = sum(1 for seen in self.leases_of(key) if seen.lease.spec.holder_identity)
        return asset is not None and taken >= asset.spec.capacity

    def _note_term(self, lease: Lease, now: float) -> set[AssetKey]:
        key, slot = _slot_of(lease)
        self._slots[key][slot] = lease.metadata.name
        where = (key.namespace, lease.metadata.name)
        term = (
            lease.metadata.uid,
            lease.spec.holder_identity,
            lease.spec.renew_time,
            lease.spec.lease_transitions,
        )
        if self._terms.get(where, (None,))[0] != term:
            self._terms[where] = (term, now)
        return {key} | self._taken_together_with(lease)

    def _taken_together_with(self, lease: Lease) -> set[AssetKey]:
        """The other assets of the lock that has this Lease, or had it, if it is for several: they end together."""
        name = lease.metadata.annotations.get(names.LOCK_ANNOTATION, "")
        lock = self.locks.get(lease.metadata.namespace or "", name)
        return keys_of(lock) if lock and is_joint(lock) and not queue.has_ended(lock) else set()


def _is_lock(metadata: dict[str, Any]) -> bool:
    asset = metadata.get("labels", {}).get(names.ASSET_LABEL)
    return bool(asset) and names.slot_of(asset, metadata["name"]) is not None


def _slot_of(lease: Lease) -> tuple[AssetKey, int]:
    asset = lease.metadata.labels[names.ASSET_LABEL]
    return AssetKey(lease.metadata.namespace or "", asset), names.slot_of(asset, lease.metadata.name) or 0
