"""AssetLocks by the assets that they are about: one, several by name, or any that they select."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from assetlock.controller.cache.collection import Collection
from assetlock.controller.keys import AssetKey, Concerned, keys_of, lock_key
from assetlock.core.locks import queue
from assetlock.core.locks.lock import is_about, is_choosing, is_joint
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock

_Index = defaultdict[AssetKey, dict[str, AssetLock]]


class LockIndex:
    """Finds locks by asset, and tells whom it may concern that a lock or an asset changed."""

    def __init__(self, assets: Collection[Asset]) -> None:
        self._assets = assets
        self._by_name: _Index = defaultdict(dict)
        self._joint: _Index = defaultdict(dict)
        self._choosing: defaultdict[str, dict[str, AssetLock]] = defaultdict(dict)

    def change(self, old: AssetLock | None, new: AssetLock | None) -> set[Concerned]:
        """Take in a lock in place of the one before; gives the assets and locks that this may concern."""
        concerned: set[Concerned] = set()
        if old is not None:
            concerned |= self._drop(old)
        if new is not None:
            concerned |= self._file(new)
        concerned |= {lock_key(lock) for lock in (old, new) if lock is not None and is_joint(lock)}
        if old is not None and _is_choosing(old) and not (new is not None and _is_choosing(new)):
            concerned |= self._let_by(old)
        return concerned

    def of(self, key: AssetKey) -> dict[str, AssetLock]:
        """The locks that name the asset, have chosen it or may choose it, by name."""
        return {**self._by_name.get(key, {}), **self._may_choose(key)}

    def joint_on(self, key: AssetKey) -> Iterable[AssetLock]:
        """Of those the ones over several assets that this is one of."""
        return self._joint.get(key, {}).values()

    def selected_by(self, lock: AssetLock) -> list[str]:
        """The assets that a lock may choose, in order."""
        there = (asset for asset in self._assets if asset.metadata.namespace == lock.metadata.namespace)
        return sorted(
            asset.metadata.name
            for asset in there
            if is_about(lock, asset.metadata.name, asset.metadata.labels)
        )

    def concerned_by(self, keys: Iterable[AssetKey], is_full: Callable[[AssetKey], bool]) -> set[Concerned]:
        """The locks over several assets that a change of one of these may matter to.

        While an asset is full nobody chooses it, whatever changes there.
        """
        concerned: set[Concerned] = set()
        for key in keys:
            locks = [*self.joint_on(key), *(() if is_full(key) else self._may_choose(key).values())]
            concerned |= {lock_key(lock) for lock in queue.joint_to_look_at(locks)}
        return concerned

    def who_chooses(self, namespace: str) -> set[Concerned]:
        """The locks that may have other assets to choose from than before."""
        locks = self._choosing.get(namespace, {}).values()
        return {lock_key(lock) for lock in queue.joint_to_look_at(locks)}

    def assets(self) -> set[AssetKey]:
        """The assets that a lock is about."""
        return set(self._by_name)

    def _may_choose(self, key: AssetKey) -> Mapping[str, AssetLock]:
        asset, locks = self._assets.get(key.namespace, key.name), self._choosing.get(key.namespace)
        if asset is None or not locks:
            return {}
        labels = asset.metadata.labels
        return {name: lock for name, lock in locks.items() if is_about(lock, key.name, labels)}

    def _let_by(self, lock: AssetLock) -> set[Concerned]:
        """Who stood in line behind a lock on what it could have chosen, and does no more."""
        namespace = lock.metadata.namespace or ""
        selected = (AssetKey(namespace, name) for name in self.selected_by(lock))
        return self.who_chooses(namespace) | {key for key in selected if key in self._by_name}

    def _file(self, lock: AssetLock) -> set[AssetKey]:
        keys = keys_of(lock)
        for index in self._indexes_of(lock):
            for key in keys:
                index[key][lock.metadata.name] = lock
        if _is_choosing(lock):
            self._choosing[lock.metadata.namespace or ""][lock.metadata.name] = lock
        return keys

    def _drop(self, lock: AssetLock) -> set[AssetKey]:
        keys = keys_of(lock)
        for index in self._indexes_of(lock):
            for key in keys:
                index[key].pop(lock.metadata.name, None)
                if not index[key]:
                    del index[key]
        self._choosing[lock.metadata.namespace or ""].pop(lock.metadata.name, None)
        return keys

    def _indexes_of(self, lock: AssetLock) -> list[_Index]:
        return [self._by_name, self._joint] if is_joint(lock) else [self._by_name]


def _is_choosing(lock: AssetLock) -> bool:
    return is_choosing(lock) and not queue.has_ended(lock)
