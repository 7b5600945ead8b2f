"""How AssetLocks end: released, expired, revoked, failed; and when they are forgotten."""

from __future__ import annotations

import datetime

from assetlock.core import queue, statuses
from assetlock.core.decision import (
    Confirmation,
    ConfirmLease,
    ConfirmNoAsset,
    ConfirmPod,
    Decision,
    DeleteLock,
    Happening,
    WriteLockStatus,
)
from assetlock.core.situation import Ending, Situation
from assetlock.model.assetlock import AssetLock, LockState


def end_locks(situation: Situation) -> Decision | None:
    """Make AssetLocks terminal whose time is over, before anything else is taken from them."""
    observation, lock, ending = situation.observation, situation.lock, situation.ending
    if lock is not None and ending is not None and not queue.has_ended(lock):
        confirm: tuple[Confirmation, ...] = ()
        if ending.state is LockState.EXPIRED and observation.lease is not None:
            confirm = (ConfirmLease(observation.lease.metadata.resource_version),)
        elif ending.reason == "AssetDeleted":
            confirm = (ConfirmNoAsset(),)
        elif ending.pod is not None:
            confirm = (ConfirmPod(ending.pod, ended=True),)
        return Decision(confirm=confirm, writes=(_finish(situation, lock, ending),))
    acquisition = situation.tenure.acquisition if situation.tenure else None
    for other in observation.locks:
        if other.metadata.uid != acquisition and _may_be_announced(situation, other):
            lost = Ending(LockState.REVOKED, "LeaseLost", "its Lease was deleted or taken over")
            version = observation.lease.metadata.resource_version if observation.lease else None
            return Decision(confirm=(ConfirmLease(version),), writes=(_finish(situation, other, lost),))
    return None


def give_up(situation: Situation) -> Decision | None:
    """Fail the locks that can't be had: those that don't wait, and those that have waited long enough."""
    observation = situation.observation
    acquisition = situation.tenure.acquisition if situation.tenure else None
    version = observation.lease.metadata.resource_version if observation.lease else None
    for lock in observation.locks:
        if not queue.is_pending(lock) or lock.metadata.uid == acquisition:
            continue
        if lock.metadata.deletion_timestamp is not None:
            ending = Ending(LockState.RELEASED, "Deleted", "deleted while it waited")
        elif lock.spec.holder is None:
            ending = Ending(
                LockState.FAILED, "HolderUnknown", "admission did not stamp who asked; create the lock again"
            )
        elif (gone := situation.given_up_by_pod(lock)) is not None:
            ending = gone
        elif not queue.waits_at_all(lock) or queue.ran_out(observation, lock):
            reason, why = statuses.waiting_for(situation)
            waited = f"waited {lock.spec.wait}; " if queue.waits_at_all(lock) else ""
            hint = "" if waited else "; set spec.wait to queue"
            reason = "WaitTimeout" if waited else reason
            ending = Ending(LockState.FAILED, reason, f"{waited}{why}{hint}")
        else:
            continue
        confirm: Confirmation = ConfirmLease(version) if observation.asset is not None else ConfirmNoAsset()
        if ending.pod is not None:
            confirm = ConfirmPod(ending.pod, ended=True)
        return Decision(confirm=(confirm,), writes=(_finish(situation, lock, ending),))
    return None


def forget(situation: Situation) -> Decision | None:
    """Delete finished AssetLocks when ``ttlSecondsAfterFinished`` is over."""
    acquisition = situation.tenure.acquisition if situation.tenure else None
    writes = [
        DeleteLock(lock.metadata.name, lock.metadata.uid, lock.metadata.resource_version)
        for lock in situation.observation.locks
        if lock.metadata.uid != acquisition
        and lock.metadata.deletion_timestamp is None
        and (moment := forget_at(lock)) is not None
        and moment <= situation.observation.now
    ]
    return Decision(writes=tuple(writes)) if writes else None


def forget_at(lock: AssetLock) -> datetime.datetime | None:
    """When the finished lock is to be deleted; ``None`` for never, or not yet known."""
    if lock.spec.ttl_seconds_after_finished is None or lock.status.finish_time is None:
        return None
    return lock.status.finish_time + datetime.timedelta(seconds=lock.spec.ttl_seconds_after_finished)


def _finish(situation: Situation, lock: AssetLock, ending: Ending) -> WriteLockStatus:
    bad = ending.state is not LockState.RELEASED
    told = Happening.about(lock, str(ending.state), ending.message, warning=bad)
    return WriteLockStatus(statuses.finished_body(situation, lock, ending), tells=(told,))


def _may_be_announced(situation: Situation, lock: AssetLock) -> bool:
    """Whether it was announced, or recorded, so that one who slept since may yet announce it."""
    asset = situation.observation.asset
    recorded = asset is not None and any(h.acquisition == lock.metadata.uid for h in asset.status.holders)
    return lock.status.state is LockState.HELD or (recorded and queue.is_pending(lock))
