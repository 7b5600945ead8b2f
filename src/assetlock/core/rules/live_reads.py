"""What is read live before a decision that only holds if nothing was overlooked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assetlock.core import names
from assetlock.core.acquisition import Acquisition
from assetlock.core.decision import (
    ConfirmAsset,
    ConfirmLease,
    ConfirmLockGone,
    ConfirmNoTarget,
    ConfirmPod,
)
from assetlock.core.fence.stamp import StampedHolder
from assetlock.core.locks.lease_claim import WITHHELD
from assetlock.core.locks.lock import acquisition_of, is_given_back, lock_uid
from assetlock.core.observation import ObservedLease
from assetlock.core.situation import Situation
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock


def confirm_slots(situation: Situation, slots: Iterable[int]) -> tuple[ConfirmLease, ...]:
    """The Leases of these slots are as they are known, or not there if none is known."""
    observation = situation.observation
    return tuple(
        ConfirmLease(
            names.lease_name(observation.name, slot),
            observed.version if (observed := observation.lease(slot)) else None,
        )
        for slot in slots
    )


def confirm_leases(leases: Iterable[ObservedLease]) -> tuple[ConfirmLease, ...]:
    """These Leases are as they are known."""
    return tuple(ConfirmLease(observed.name, observed.version) for observed in leases)


def confirm_not_over(holders: Iterable[Acquisition]) -> tuple[ConfirmLease, ...]:
    """Who was announced had all of it; if something lacks now, perhaps the Lease has ended unseen."""
    told = (holder for holder in holders if holder.token_announced is not None)
    return tuple(confirmation for holder in told for confirmation in confirm_leases(holder.claim.leases))


def confirm_readmission(
    situation: Situation, wanted: Sequence[StampedHolder], present: Sequence[StampedHolder]
) -> tuple[ConfirmLease | ConfirmAsset, ...]:
    """Before the holders that a stamp or guard names are changed.

    Whoever was announced and is put back must still hold; whoever is taken out, and is not replaced by somebody with
    a higher token, must be off the Asset.
    """
    missing = {line.token for line in wanted if line not in present}
    lacking = [h for h in situation.holders if h.recorded and h.recorded.fencing_token in missing]
    asset = situation.observation.asset
    if asset is None or not set(present) - set(wanted):
        return confirm_not_over(lacking)
    newest = max(line.token for line in present)
    if any(line.token > newest for line in wanted):
        return confirm_not_over(lacking)
    return (ConfirmAsset(asset.metadata.resource_version), *confirm_not_over(lacking))


def confirm_recorded(situation: Situation, version: str) -> tuple[ConfirmAsset, ...]:
    """Before holders are put on an object of this ``version`` that nobody was told of yet.

    If it was changed since the Asset named them, perhaps they were taken off again: the Asset's is the older view.
    """
    asset = situation.observation.asset
    told = all(holder.announced for holder in situation.holders if holder.recorded)
    if asset is None or told or _number(version) <= _number(asset.metadata.resource_version):
        return ()
    return (ConfirmAsset(asset.metadata.resource_version),)


def confirm_absent(situation: Situation) -> tuple[ConfirmNoTarget, ...]:
    """The targets of which none is known are not there: one that was made anew may be stamped for who held before."""
    absent = (each for each in situation.observation.targets if each.wanted and each.uid is None)
    return tuple(ConfirmNoTarget(each.target) for each in absent if each.target.name and not each.problem)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def confirm_ended(
    situation: Situation, leases: Iterable[ObservedLease]
) -> tuple[ConfirmLockGone | ConfirmPod, ...]:
    """Whoever had these Leases has lost them: AssetLocks that are not known, and pods, are looked for."""
    slots = {observed.slot for observed in leases}
    ended = (a for a in situation.acquisitions if slots & set(a.claim.slots))
    return tuple(confirmation for acquisition in ended for confirmation in _confirm_end(acquisition))


def _confirm_end(acquisition: Acquisition) -> tuple[ConfirmLockGone | ConfirmPod, ...]:
    ending, name = acquisition.ending, acquisition.claim.lock_name
    if ending is not None and ending.pod is not None:
        return (ConfirmPod(ending.pod, ended=True),)
    if ending is None or ending.confirmed or name is None:
        return ()
    return (ConfirmLockGone(name, lock_uid(acquisition.id)),)


def confirm_former_gone(situation: Situation) -> tuple[ConfirmLease | ConfirmLockGone, ...]:
    """Nobody is taken off the Asset who might still hold: AssetLocks that are not known, and Leases, are sought."""
    return tuple(
        confirmation for holder in situation.former for confirmation in _confirm_gone(situation, holder)
    )


def _confirm_gone(situation: Situation, holder: Holder) -> tuple[ConfirmLease | ConfirmLockGone, ...]:
    if holder.lock is None or holder.acquisition.endswith(WITHHELD):
        return confirm_slots(situation, holder.slots)
    if any(_has_had(lock, holder.acquisition) for lock in situation.observation.locks):
        return ()
    return (ConfirmLockGone(holder.lock, lock_uid(holder.acquisition)),)


def _has_had(lock: AssetLock, acquisition: str) -> bool:
    """Whether it is the lock's present acquisition, or an earlier attempt of it."""
    return acquisition_of(lock) == acquisition or is_given_back(acquisition, lock)
