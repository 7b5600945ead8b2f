"""Joint locks: AssetLocks over several assets, which are held together or not at all.

All of a joint lock's Leases belong to one attempt to take its assets. When one of them can't be had after all, the
attempt is given up in one write on the AssetLock; from then on the Leases of that attempt are nobody's, and whoever
still acts on it, because it slept, conflicts. An asset that is fenced for the lock is told there, in the lock's
status; the last one makes it ``Held``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assetlock.core import names
from assetlock.core.identity import Identity
from assetlock.core.observation import ObservedLease
from assetlock.core.selection import selects
from assetlock.model.assetlock import AssetLock, LockedAsset, LockState
from assetlock.model.conditions import reason_of
from assetlock.model.lease import Lease

CLOSED = frozenset({"AssetNotFound", "NotFenceable", "Maintenance", "TooFewAssets"})
"""The reasons for which nobody gets an asset, or not such a lock, whoever is before it in line."""


def is_joint(lock: AssetLock) -> bool:
    """Whether the lock is for several assets as one."""
    return lock.spec.asset_name is None


def assets_of(lock: AssetLock) -> tuple[str, ...]:
    """The assets that the lock is for, in the order in which they are taken. None while they are not chosen."""
    if lock.spec.asset_name is not None:
        return (lock.spec.asset_name,)
    chosen = (one.name for one in lock.status.assets or ())
    return tuple(sorted(set(chosen if lock.spec.asset_selector else lock.spec.asset_names or ())))


def is_choosing(lock: AssetLock) -> bool:
    """Whether the lock is for any of the assets that it selects, and has not chosen yet."""
    return lock.spec.asset_selector is not None and not lock.status.assets


def is_about(lock: AssetLock, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the lock is for an asset of this name, or may choose one with these labels."""
    selector = lock.spec.asset_selector
    if selector is not None and is_choosing(lock):
        return selects(selector, labels)
    return name in assets_of(lock)


def acquisition_of(lock: AssetLock) -> str:
    """The id of what the lock acquires, or tries to; that of a joint lock is another with each attempt."""
    return f"{lock.metadata.uid}.{lock.status.attempt}" if lock.status.attempt else lock.metadata.uid


def lock_uid(acquisition: str) -> str:
    """The UID of the AssetLock that an acquisition belongs to, or once belonged to."""
    return acquisition.partition(".")[0]


def attempt_of(acquisition: str) -> int:
    """Which attempt of its AssetLock an acquisition is."""
    number = acquisition.partition(".")[2].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def is_given_back(acquisition: str, lock: AssetLock) -> bool:
    """Whether it is an earlier attempt of this lock: it has been given up for good."""
    return lock_uid(acquisition) == lock.metadata.uid and attempt_of(acquisition) < (lock.status.attempt or 0)


def token_told(lock: AssetLock, asset: str) -> int | None:
    """The token on this asset that the lock has told, which it does once nobody else can write there."""
    if not is_joint(lock):
        return lock.status.fencing_token if lock.status.state is LockState.HELD else None
    return next((one.fencing_token for one in lock.status.assets or () if one.name == asset), None)


def tell(lock: AssetLock, asset: str, token: int) -> list[LockedAsset]:
    """The tokens that the lock tells, with this one."""
    told = {one.name: one.fencing_token for one in lock.status.assets or ()} | {asset: token}
    return [LockedAsset(name=name, fencing_token=told.get(name)) for name in assets_of(lock) if name in told]


def may_tell(lock: AssetLock, asset: str) -> bool:
    """Whether it is this asset's turn to tell its token: in order, so that they do not get in each other's way."""
    return all(token_told(lock, before) is not None for before in assets_of(lock) if before < asset)


def is_whole(lock: AssetLock, told: Sequence[LockedAsset]) -> bool:
    """Whether these are all of the lock's assets, fenced."""
    return {one.name for one in told if one.fencing_token is not None} == set(assets_of(lock))


def steps_aside(lock: AssetLock) -> bool:
    """Whether one of its assets is closed to the lock, as its status says: others go before it on all of them."""
    return is_joint(lock) and reason_of(lock.status.conditions, "Settled") in CLOSED


def asset_of(lease: Lease) -> str:
    """The asset that a Lease is a slot of."""
    return lease.metadata.labels.get(names.ASSET_LABEL, "")


def has_all(lock: AssetLock, own: str, elsewhere: Sequence[ObservedLease]) -> bool:
    """Whether a lock that has Leases of ``own``, and these elsewhere, has some of each of its assets."""
    wanted = set(assets_of(lock))
    return own in wanted and {own, *(asset_of(observed.lease) for observed in elsewhere)} >= wanted


def identity_of(lock: AssetLock) -> Identity:
    """Whom a lock is for, as admission stamped it; raises ValueError where it has not."""
    holder = lock.spec.holder
    if holder is None:
        raise ValueError(f"AssetLock {lock.metadata.name} names no holder")
    match lock.spec.bind_to:
        case "Pod":
            return Identity(holder.username, pod_uid=holder.pod_uid or "").fit()
        case "Credential":
            return Identity(holder.username, credential_id=holder.credential_id or "").fit()
        case _:
            return Identity(holder.username).fit()
