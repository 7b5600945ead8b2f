"""What is looked at and decided about, one at a time each."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from assetlock.core.locks.lock import assets_of
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock


class AssetKey(NamedTuple):
    """Which asset: everything is decided for one asset at a time."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


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


class DeadlocksKey(NamedTuple):
    """Who waits for whom in a namespace: whether anybody waits for himself is seen only from above its assets."""

    namespace: str
    name: str = ""
    kind: str = "Waits"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}"


class LineKey(NamedTuple):
    """Which asset's line, behind its head: only what is shown of that is decided apart from the asset."""

    namespace: str
    name: str
    kind: str = "Line"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


Concerned: TypeAlias = AssetKey | LockKey | LineKey
"""What an object that changed may matter to."""

Key: TypeAlias = AssetKey | WindowKey | LockKey | DeadlocksKey | LineKey


def asset_key(asset: Asset) -> AssetKey:
    """The key of an asset."""
    return AssetKey(asset.metadata.namespace or "", asset.metadata.name)


def lock_key(lock: AssetLock) -> LockKey:
    """The key of a lock over several assets."""
    return LockKey(lock.metadata.namespace or "", lock.metadata.name)


def keys_of(lock: AssetLock) -> set[AssetKey]:
    """The assets that a lock is for, as far as it has chosen them."""
    return {AssetKey(lock.metadata.namespace or "", name) for name in assets_of(lock)}
