"""How AssetLocks end: released, expired, revoked, failed; and when they are forgotten."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assetlock.core import names
from assetlock.core.acquisition import Acquisition, Ending, needs_all
from assetlock.core.decision import (
    ConfirmAsset,
    Confirmation,
    ConfirmPod,
    Decision,
    DeleteLock,
    Event,
    WriteLockStatus,
)
from assetlock.core.locks import queue
from assetlock.core.locks.lease_claim import WITHHELD
from assetlock.core.locks.lock import acquisition_of, is_joint
from assetlock.core.observation import Observation
from assetlock.core.rules.live_reads import confirm_leases, confirm_slots
from assetlock.core.situation import Situation
from assetlock.core.status import assetlock as lock_status
from assetlock.core.status import turnover
from assetlock.model.assetlock import AssetLock, LockState

_PASSING = frozenset({"Locked", "LockDelay", "Maintenance", "Waiting"})
"""Reasons that end by themselves, so that waiting helps."""


def end_locks(situation: Situation) -> Iterator[Decision]:
    """Make AssetLocks terminal whose time is over, before anything else is taken from them."""
    for acquisition in situation.acquisitions:
        lock, ending = acquisition.lock, acquisition.ending
        if lock is not None and ending is not None and not queue.has_ended(lock):
            confirm = _confirm_ending(situation, acquisition, ending)
            yield Decision(confirm=confirm, writes=(finish(situation, lock, ending),))
    for lock in situation.displaced:
        displaced = Ending(
            LockState.REVOKED, "AssetRemade", "the asset was recreated, and has no room for it"
        )
        confirm = _confirm_displaced(situation)
        yield Decision(confirm=confirm, writes=(finish(situation, lock, displaced),))
    known = {acquisition.id for acquisition in situation.acquisitions}
    recorded = {holder.acquisition for holder in situation.former}
    for lock in situation.observation.locks:
        if acquisition_of(lock) not in known and _may_be_announced(lock, recorded):
            lost = Ending(LockState.REVOKED, "LeaseLost", "its Lease was deleted or taken over")
            confirm = confirm_slots(situation, _slots_of(situation, lock))
            yield Decision(confirm=confirm, writes=(finish(situation, lock, lost),))


def _confirm_ending(
    situation: Situation, acquisition: Acquisition, ending: Ending
) -> tuple[Confirmation, ...]:
    if ending.reason in ("Expired", "Quarantined"):
        return confirm_leases((*acquisition.claim.leases, *acquisition.claim.elsewhere))
    if ending.reason == "AssetDeleted":
        return (ConfirmAsset(None),)
    if ending.pod is not None:
        return (ConfirmPod(ending.pod, ended=True),)
    if ending.reason == "LeaseLost" and acquisition.recorded:
        return confirm_slots(situation, acquisition.recorded.slots)
    return ()


def _confirm_displaced(situation: Situation) -> tuple[Confirmation, ...]:
    """The Asset is known as it is, and all Leases of it: otherwise what lacks may only not have been seen yet."""
    asset = situation.observation.asset
    version = asset.metadata.resource_version if asset else None
    slots = confirm_slots(situation, range(situation.observation.capacity))
    return (ConfirmAsset(version), *slots)


def give_up(situation: Situation) -> Iterator[Decision]:
    """Fail the locks that can't be had: those that don't wait, and those that have waited long enough."""
    observation = situation.observation
    for lock in observation.locks:
        if lock.metadata.uid in situation.patient or not queue.is_pending(lock):
            continue
        if is_joint(lock) or (lock.metadata.uid in situation.held and not _is_held_up(situation, lock)):
            continue
        if (withdrawn := not_to_be_served(lock)) is not None:
            ending = withdrawn
        elif (gone := situation.given_up_by_pod(lock)) is not None:
            ending = gone
        elif situation.takes_nothing(lock):
            missing = f"there is no lock {lock.spec.take_over} on the asset to take over from"
            ending = Ending(LockState.FAILED, "NothingToTakeOver", missing)
        elif has_no_time_left(observation, lock) and not _may_yet_be_had(situation, lock):
            ending = not_had(lock, *lock_status.waiting_for(situation, lock))
        else:
            continue
        confirm = _confirm_taken(situation, lock)
        if ending.pod is not None:
            confirm = (ConfirmPod(ending.pod, ended=True),)
        yield Decision(confirm=confirm, writes=(finish(situation, lock, ending),))


def _is_held_up(situation: Situation, lock: AssetLock) -> bool:
    """Whether a lock that has its Leases can't be announced for now: it waits, too."""
    return situation.held_up is not None and queue.is_pending(lock)


def _may_yet_be_had(situation: Situation, lock: AssetLock) -> bool:
    """Whether nothing has failed but an answer is late, of which a lock that does not wait can't know."""
    held_up = situation.held_up
    return held_up is not None and not held_up.failed and not queue.ran_out(situation.observation, lock)


def not_to_be_served(lock: AssetLock) -> Ending | None:
    """How a lock that waits ends that is being deleted, or is for nobody."""
    if lock.metadata.deletion_timestamp is not None:
        return Ending(LockState.RELEASED, "Deleted", "deleted while it waited")
    if names.COPY_ANNOTATION in lock.metadata.annotations:
        message = (
            "it is a copy of another AssetLock, as from a backup, and asks for nothing; create a new one"
        )
        return Ending(LockState.FAILED, "Restored", message)
    if lock.spec.holder is None:
        message = "admission did not stamp who asked; create the lock again"
        return Ending(LockState.FAILED, "HolderUnknown", message)
    return None


def has_no_time_left(observation: Observation, lock: AssetLock) -> bool:
    """Whether a lock is had now or never: it does not wait, or has waited long enough."""
    return not queue.waits_at_all(lock) or queue.ran_out(observation, lock)


def not_had(lock: AssetLock, reason: str, why: str) -> Ending:
    """How such a lock ends that can't be had, with reason and sentence why it can't."""
    if queue.waits_at_all(lock):
        return Ending(LockState.FAILED, "WaitTimeout", f"waited {lock.spec.wait}; {why}")
    return Ending(LockState.FAILED, reason, f"{why}; set spec.wait to queue" if reason in _PASSING else why)


def _confirm_taken(situation: Situation, lock: AssetLock) -> tuple[Confirmation, ...]:
    """Nobody is turned away for a Lease that is not there any more: one is enough for whoever needs all of them."""
    if situation.observation.asset is None:
        return (ConfirmAsset(None),)
    if needs_all(lock) and situation.holders:
        return confirm_leases([situation.holders[0].primary])
    free = [slot for slot in range(situation.observation.capacity) if slot not in situation.stuck_slots]
    return confirm_slots(situation, free)


def forget(situation: Situation) -> Decision | None:
    """Delete finished AssetLocks when ``ttlSecondsAfterFinished`` is over."""
    acquisitions = {acquisition.id for acquisition in situation.acquisitions}
    writes = [
        DeleteLock(lock.metadata.name, lock.metadata.uid, lock.metadata.resource_version)
        for lock in situation.observation.locks
        if not is_joint(lock)
        and not acquisitions & {lock.metadata.uid, lock.metadata.uid + WITHHELD}
        and lock.metadata.deletion_timestamp is None
        and (moment := queue.forget_at(lock)) is not None
        and moment <= situation.observation.now
    ]
    return Decision(writes=tuple(writes), independent=True) if writes else None


def finish(situation: Situation, lock: AssetLock, ending: Ending) -> WriteLockStatus:
    """The write that makes an AssetLock terminal."""
    bad = ending.state is not LockState.RELEASED
    told = Event.about(lock, str(ending.state), _told(situation, lock, ending), warning=bad)
    status = lock_status.finished(situation, lock, ending)
    return WriteLockStatus(lock_status.body(situation, lock, status), events=(told,))


def _told(situation: Situation, lock: AssetLock, ending: Ending) -> str:
    """What ended, where something had begun, and why."""
    asset = situation.observation.asset
    holders = asset.status.holders if asset else []
    held = next((each for each in holders if each.acquisition == acquisition_of(lock)), None)
    if held is None:
        return ending.message
    return (
        f"asset {situation.observation.name} is no longer locked by {turnover.whose(held)}: {ending.message}"
    )


def _may_be_announced(lock: AssetLock, recorded: Collection[str]) -> bool:
    """Whether it was announced, or recorded, so that one who slept since may yet announce it."""
    return lock.status.state is LockState.HELD or (
        acquisition_of(lock) in recorded and queue.is_pending(lock)
    )


def _slots_of(situation: Situation, lock: AssetLock) -> Sequence[int]:
    former = (holder for holder in situation.former if holder.acquisition == acquisition_of(lock))
    recorded = next(former, None)
    return recorded.slots if recorded else range(situation.observation.capacity)
