"""AssetLocks by the assets that they are about: one, several by name, or any that they select."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from assetlock.controller.cache.collection import Collection
from assetlock.controller.keys import AssetKey, Concerned, LineKey, keys_of, lock_key
from assetlock.core.locks import queue
from assetlock.core.locks.line import Line
from assetlock.core.locks.lock import is_about, is_choosing, is_joint
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock

_Index = defaultdict[AssetKey, dict[str, AssetLock]]


class LockIndex:
    """Finds locks by asset, and tells whom it may concern that a lock or an asset changed."""

    def __init__(self, assets: Collection[Asset]) -> None:
        self._assets = assets
        self._lines: dict[AssetKey, Line] = {}
        self._joint: _Index = defaultdict(dict)
        self._choosing: defaultdict[str, dict[str, AssetLock]] = defaultdict(dict)

    def change(self, old: AssetLock | None, new: AssetLock | None, seen: float) -> set[Concerned]:
        """Take in a lock in place of the one before; gives the assets and locks that this may concern.

        ``seen`` is when the new one was first seen, on the monotonic clock. Who waits far back concerns the line
        and not yet the asset.
        """
        locks = [lock for lock in (old, new) if lock is not None]
        keys = set().union(*map(keys_of, locks))
        before = {key for key in keys if old is not None and not self._is_far_back(key, old)}
        if old is not None:
            self._drop(old)
        if new is not None:
            self._file(new, seen)
        near = before | {key for key in keys if new is not None and not self._is_far_back(key, new)}
        long = {key for key in keys if (line := self._lines.get(key)) and line.waiting > queue.SHOWN}
        concerned: set[Concerned] = {*near, *(LineKey(*key) for key in (keys - near) | long)}
        concerned |= {lock_key(lock) for lock in locks if is_joint(lock)}
        if old is not None and _is_choosing(old) and not (new is not None and _is_choosing(new)):
            concerned |= self._let_by(old)
        return concerned

    def _is_far_back(self, key: AssetKey, lock: AssetLock) -> bool:
        line = self._lines.get(key)
        return line is not None and line.is_far_back(lock.metadata.uid)

    def line(self, key: AssetKey) -> Line:
        """The locks that name the asset or have chosen it."""
        return self._lines.get(key) or Line(key.name)

    def may_choose(self, key: AssetKey) -> Mapping[str, AssetLock]:
        """The locks that may choose the asset and have chosen none yet, by name."""
        asset, locks = self._assets.get(key.namespace, key.name), self._choosing.get(key.namespace)
        if asset is None or not locks:
            return {}
        labels = asset.metadata.labels
        return {name: lock for name, lock in locks.items() if is_about(lock, key.name, labels)}

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
            locks = [*self.joint_on(key), *(() if is_full(key) else self.may_choose(key).values())]
            concerned |= {lock_key(lock) for lock in queue.joint_to_look_at(locks)}
        return concerned

    def who_chooses(self, namespace: str) -> set[Concerned]:
        """The locks that may have other assets to choose from than before."""
        locks = self._choosing.get(namespace, {}).values()
        return {lock_key(lock) for lock in queue.joint_to_look_at(locks)}

    def assets(self) -> set[AssetKey]:
        """The assets that a lock is about."""
        return set(self._lines)

    def _let_by(self, lock: AssetLock) -> set[Concerned]:
        """Who stood in line behind a lock on what it could have chosen, and does no more."""
        namespace = lock.metadata.namespace or ""
        selected = (AssetKey(namespace, name) for name in self.selected_by(lock))
        return self.who_chooses(namespace) | {key for key in selected if key in self._lines}

    def _file(self, lock: AssetLock, seen: float) -> None:
        for key in keys_of(lock):
            self._lines.setdefault(key, Line(key.name)).add(lock, seen)
            if is_joint(lock):
                self._joint[key][lock.metadata.name] = lock
        if _is_choosing(lock):
            self._choosing[lock.metadata.namespace or ""][lock.metadata.name] = lock

    def _drop(self, lock: AssetLock) -> None:
        for key in keys_of(lock):
            line = self._lines[key]
            line.discard(lock.metadata.uid)
            if not len(line):
                del self._lines[key]
            self._joint[key].pop(lock.metadata.name, None)
            if not self._joint[key]:
                del self._joint[key]
        self._choosing[lock.metadata.namespace or ""].pop(lock.metadata.name, None)


def _is_choosing(lock: AssetLock) -> bool:
    return is_choosing(lock) and not queue.has_ended(lock)
