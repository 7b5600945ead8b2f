"""The latest known version of every Asset, AssetLock and labelled Lease, by asset.

Objects come from watches, from whole lists and from the answers to our own writes, in any order: a version
never replaces a later one, and what was deleted does not come back by an older event. resourceVersions are
compared as numbers, which Kubernetes guarantees for its own storage since 1.35 and etcd always gave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from assetlock.core import joint, names, queue
from assetlock.core.closing import concerns
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.meta import ObjectMeta
from assetlock.model.window import MaintenanceWindow


class AssetKey(NamedTuple):
    """Which asset: everything is decided for one asset at a time."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class SeenLease(NamedTuple):
    """The Lease of one of an asset's slots, and when its present term was first seen."""

    slot: int
    lease: Lease
    seen: float


class WindowKey(NamedTuple):
    """Which maintenance window: its status is made apart from any asset."""

    namespace: str
    name: str
    kind: str = "MaintenanceWindow"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class LockKey(NamedTuple):
    """Which AssetLock over several assets: when it takes them is decided apart from each of them."""

    namespace: str
    name: str
    kind: str = "AssetLock"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class WaitsKey(NamedTuple):
    """Who waits for whom in a namespace: whether anybody waits for himself is seen only from above its assets."""

    namespace: str
    name: str = ""
    kind: str = "Waits"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}"


Concerned: TypeAlias = AssetKey | LockKey
"""What an object that changed may matter to."""

Key: TypeAlias = AssetKey | WindowKey | LockKey | WaitsKey


class _HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


Model = TypeVar("Model", Asset, AssetLock, Lease, MaintenanceWindow)


class Collection(Generic[Model]):
    """The objects of one kind, by namespace and name."""

    def __init__(self, model: type[Model]) -> None:
        self._model: type[Model] = model
        self._objects: dict[tuple[str, str], Model] = {}
        self._gone: dict[tuple[str, str], int] = {}

    def get(self, namespace: str, name: str) -> Model | None:
        """The latest known version; ``None`` when there is no such object."""
        return self._objects.get((namespace, name))

    def __iter__(self) -> Iterator[Model]:
        return iter(self._objects.values())

    def put(self, raw: dict[str, Any]) -> tuple[Model | None, Model | None]:
        """Take in a version; gives what was known before and what is known now."""
        meta = raw["metadata"]
        where, version = (meta.get("namespace") or "", meta["name"]), int(meta["resourceVersion"])
        old = self._objects.get(where)
        if version <= self._gone.get(where, -1) or (old is not None and version <= _version(old)):
            return old, old
        new = self._model.model_validate(raw)
        self._gone.pop(where, None)
        self._objects[where] = new
        return old, new

    def remove(self, namespace: str, name: str, version: int) -> Model | None:
        """Take in that the object was gone at ``version``; gives what was known before, if it is gone now."""
        where = (namespace, name)
        old = self._objects.get(where)
        if old is not None and _version(old) > version:
            return None
        self._gone[where] = max(version, self._gone.get(where, -1))
        return self._objects.pop(where, None)

    def missing_from(self, raws: Iterable[dict[str, Any]], version: int) -> list[Model]:
        """What a whole list of ``version`` lacks although it is not newer; tombstones that old are dropped."""
        listed = {(raw["metadata"].get("namespace", ""), raw["metadata"]["name"]) for raw in raws}
        self._gone = {where: gone for where, gone in self._gone.items() if gone > version}
        return [o for where, o in self._objects.items() if where not in listed and _version(o) <= version]


class Cache:
    """All that is known of assets, and when it was first seen: on the monotonic clock, since the other may be set."""

    def __init__(self) -> None:
        self.assets = Collection(Asset)
        self.locks = Collection(AssetLock)
        self.leases = Collection(Lease)
        self.windows = Collection(MaintenanceWindow)
        self._locks_of: dict[AssetKey, dict[str, AssetLock]] = defaultdict(dict)
        self._joint_on: dict[AssetKey, dict[str, AssetLock]] = defaultdict(dict)
        self._choosing: dict[str, dict[str, AssetLock]] = defaultdict(dict)
        self._locks_seen: dict[str, float] = {}
        self._locks_deleted: dict[str, int] = {}
        self._also: set[LockKey] = set()
        self._terms: dict[tuple[str, str], tuple[tuple[object, ...], float]] = {}
        self._slots: dict[AssetKey, dict[int, str]] = defaultdict(dict)

    def put(self, raw: dict[str, Any], now: float) -> set[Concerned]:
        """Take in a version of any of the kinds; gives the assets and locks that it changes something for."""
        return self._with_joint(self._put(raw, now))

    def _put(self, raw: dict[str, Any], now: float) -> set[AssetKey]:
        kind = raw["kind"]
        if kind == "MaintenanceWindow":
            old_window, window = self.windows.put(raw)
            if window is old_window:
                return set()
            return self._concerned(old_window) | self._concerned(window)
        if kind == "Asset":
            old_asset, asset = self.assets.put(raw)
            if asset is None or asset is old_asset:
                return set()
            if old_asset is None or old_asset.metadata.labels != asset.metadata.labels:
                self._look_at_choosing(asset.metadata.namespace or "")
            return {_key_of_asset(asset)}
        if kind == "AssetLock":
            old_lock, lock = self.locks.put(raw)
            if lock is None or lock is old_lock:
                return set()
            self._locks_seen.setdefault(lock.metadata.uid, now)
            return self._forget(old_lock) | self._file(lock) | self._let_by(old_lock, lock)
        if not _is_lock(raw["metadata"]):
            return self._remove_raw(raw)
        old_lease, lease = self.leases.put(raw)
        if lease is None or lease is old_lease:
            return set()
        return self._note_term(lease, now)

    def remove(self, raw: dict[str, Any]) -> set[Concerned]:
        """Take in that this very version was the object's last."""
        return self._with_joint(self._remove_raw(raw))

    def _remove_raw(self, raw: dict[str, Any]) -> set[AssetKey]:
        meta, version = raw["metadata"], int(raw["metadata"]["resourceVersion"])
        if raw["kind"] == "AssetLock" and "uid" in meta:
            self._locks_deleted[meta["uid"]] = version
        return self._remove(raw["kind"], meta.get("namespace", ""), meta["name"], version)

    def was_deleted(self, uid: str) -> bool:
        """Whether the AssetLock with this UID was seen to be deleted lately. No other ever has its UID."""
        return uid in self._locks_deleted

    def version(self, kind: str, namespace: str, name: str) -> int:
        """The known resourceVersion of an object; -1 when none is known."""
        known = self._collection(kind).get(namespace, name)
        return _version(known) if known else -1

    def vanished(self, kind: str, namespace: str, name: str, version: int) -> set[Concerned]:
        """Take in that a live read did not find an object that was known in ``version`` when it began."""
        return self._with_joint(self._remove(kind, namespace, name, version))

    def replace(self, kind: str, raws: list[dict[str, Any]], version: int, now: float) -> set[Concerned]:
        """Take in a whole list, as of ``version``."""
        changed: set[AssetKey] = set()
        for raw in raws:
            changed |= self._put({**raw, "kind": kind}, now)
        for gone in self._collection(kind).missing_from(raws, version):
            changed |= self._remove(kind, gone.metadata.namespace or "", gone.metadata.name, version)
        if kind == "AssetLock":
            self._locks_deleted = {uid: at for uid, at in self._locks_deleted.items() if at > version}
        return self._with_joint(changed)

    def locks_of(self, key: AssetKey) -> tuple[AssetLock, ...]:
        """The AssetLocks that are about this asset: they name it, may choose it, or still have a Lease of it."""
        found = {**self._locks_of.get(key, {})}
        found |= {lock.metadata.name: lock for lock in self._choosing_from(key)}
        for seen in self.leases_of(key):
            name = seen.lease.metadata.annotations.get(names.LOCK_ANNOTATION, "")
            if name not in found and (lock := self.locks.get(key.namespace, name)) is not None:
                found[name] = lock
        return tuple(found.values())

    def selected_by(self, lock: AssetLock) -> list[str]:
        """The assets that a lock may choose, in order."""
        there = (asset for asset in self.assets if asset.metadata.namespace == lock.metadata.namespace)
        return sorted(
            asset.metadata.name
            for asset in there
            if joint.is_about(lock, asset.metadata.name, asset.metadata.labels)
        )

    def _choosing_from(self, key: AssetKey) -> list[AssetLock]:
        asset, locks = self.assets.get(key.namespace, key.name), self._choosing.get(key.namespace)
        if asset is None or not locks:
            return []
        labels = asset.metadata.labels
        return [lock for lock in locks.values() if joint.is_about(lock, key.name, labels)]

    def leases_elsewhere(self, key: AssetKey) -> dict[str, tuple[SeenLease, ...]]:
        """By acquisition, what locks over several assets have besides this one."""
        return {
            acquisition: found
            for lock in self._joint_on.get(key, {}).values()
            if not queue.has_ended(lock) and (found := self._leases_beside(key, lock))
            for acquisition in [joint.acquisition_of(lock)]
        }

    def _leases_beside(self, key: AssetKey, lock: AssetLock) -> tuple[SeenLease, ...]:
        acquisition = joint.acquisition_of(lock)
        return tuple(
            seen
            for other in _keys_of(lock)
            if other != key
            for seen in self.leases_of(other)
            if seen.lease.metadata.annotations.get(names.ACQUISITION_ANNOTATION) == acquisition
        )

    def locks_seen(self, key: AssetKey) -> dict[str, float]:
        """When each of them was first seen, by UID."""
        return {k.metadata.uid: self._locks_seen[k.metadata.uid] for k in self.locks_of(key)}

    def leases_of(self, key: AssetKey) -> tuple[SeenLease, ...]:
        """The Leases of the asset's slots, and when the present term of each was first seen."""
        return tuple(
            SeenLease(slot, lease, self._terms[key.namespace, name][1])
            for slot, name in sorted(self._slots.get(key, {}).items())
            if (lease := self.leases.get(key.namespace, name))
        )

    def known(self) -> set[AssetKey]:
        """Every asset that anything is known of."""
        return {_key_of_asset(asset) for asset in self.assets} | set(self._locks_of) | set(self._slots)

    def known_joint(self) -> set[LockKey]:
        """Every lock over several assets."""
        return {lock_key(lock) for lock in self.locks if joint.is_joint(lock)}

    def namespaces(self) -> set[str]:
        """Where there are AssetLocks."""
        return {key.namespace for key in self._locks_of}

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

    def _concerned(self, window: MaintenanceWindow | None) -> set[AssetKey]:
        if window is None:
            return set()
        there = (a for a in self.assets if a.metadata.namespace == window.metadata.namespace)
        return {_key_of_asset(asset) for asset in there if concerns(window, asset)}

    def _collection(self, kind: str) -> Collection[Any]:
        collections: dict[str, Collection[Any]] = {
            "Asset": self.assets,
            "AssetLock": self.locks,
            "Lease": self.leases,
            "MaintenanceWindow": self.windows,
        }
        return collections[kind]

    def _remove(self, kind: str, namespace: str, name: str, version: int) -> set[AssetKey]:
        gone = self._collection(kind).remove(namespace, name, version)
        if gone is None:
            return set()
        if kind == "MaintenanceWindow":
            return self._concerned(gone)
        if kind == "Asset":
            return {_key_of_asset(gone)}
        if kind == "AssetLock":
            self._locks_seen.pop(gone.metadata.uid, None)
            return self._forget(gone) | self._let_by(gone, None)
        key, slot = _slot_of(gone)
        self._terms.pop((namespace, name), None)
        self._slots[key].pop(slot, None)
        if not self._slots[key]:
            del self._slots[key]
        return {key} | self._taken_together_with(gone)

    def _file(self, lock: AssetLock) -> set[AssetKey]:
        keys = _keys_of(lock)
        if joint.is_joint(lock):
            self._also.add(lock_key(lock))
        for index in self._indexes_of(lock):
            for key in keys:
                index[key][lock.metadata.name] = lock
        if _is_choosing(lock):
            self._choosing[lock.metadata.namespace or ""][lock.metadata.name] = lock
        return keys

    def _forget(self, lock: AssetLock | None) -> set[AssetKey]:
        if lock is None:
            return set()
        keys = _keys_of(lock)
        if joint.is_joint(lock):
            self._also.add(lock_key(lock))
        self._choosing[lock.metadata.namespace or ""].pop(lock.metadata.name, None)
        for index in self._indexes_of(lock):
            for key in keys:
                index[key].pop(lock.metadata.name, None)
                if not index[key]:
                    del index[key]
        return keys

    def _let_by(self, old: AssetLock | None, new: AssetLock | None) -> set[AssetKey]:
        """The assets on which a lock stands in line no more that could have chosen them, if others wait there."""
        if old is None or not _is_choosing(old) or (new is not None and _is_choosing(new)):
            return set()
        namespace = old.metadata.namespace or ""
        self._look_at_choosing(namespace)
        return {key for name in self.selected_by(old) if (key := AssetKey(namespace, name)) in self._locks_of}

    def _indexes_of(self, lock: AssetLock) -> list[dict[AssetKey, dict[str, AssetLock]]]:
        return [self._locks_of, self._joint_on] if joint.is_joint(lock) else [self._locks_of]

    def _with_joint(self, keys: set[AssetKey]) -> set[Concerned]:
        """These, with the locks over several assets that a change of one of these may matter to."""
        concerned: set[Concerned] = {*keys}
        for key in keys:
            locks = [*self._joint_on.get(key, {}).values(), *self._choosing_from(key)]
            concerned |= {lock_key(lock) for lock in queue.joint_to_look_at(locks)}
        concerned |= self._also
        self._also.clear()
        return concerned

    def _look_at_choosing(self, namespace: str) -> None:
        """Other assets may be chosen now than before."""
        locks = list(self._choosing.get(namespace, {}).values())
        self._also |= {lock_key(lock) for lock in queue.joint_to_look_at(locks)}

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
        return _keys_of(lock) if lock and joint.is_joint(lock) and not queue.has_ended(lock) else set()


def lock_key(lock: AssetLock) -> LockKey:
    """The key of a lock over several assets."""
    return LockKey(lock.metadata.namespace or "", lock.metadata.name)


def _is_choosing(lock: AssetLock) -> bool:
    return joint.is_choosing(lock) and not queue.has_ended(lock)


def _keys_of(lock: AssetLock) -> set[AssetKey]:
    return {AssetKey(lock.metadata.namespace or "", name) for name in joint.assets_of(lock)}


def _key_of_asset(asset: Asset) -> AssetKey:
    return AssetKey(asset.metadata.namespace or "", asset.metadata.name)


def _is_lock(metadata: dict[str, Any]) -> bool:
    asset = metadata.get("labels", {}).get(names.ASSET_LABEL)
    return bool(asset) and names.slot_of(asset, metadata["name"]) is not None


def _slot_of(lease: Lease) -> tuple[AssetKey, int]:
    asset = lease.metadata.labels[names.ASSET_LABEL]
    return AssetKey(lease.metadata.namespace or "", asset), names.slot_of(asset, lease.metadata.name) or 0


def _version(model: _HasMetadata) -> int:
    return int(model.metadata.resource_version)
