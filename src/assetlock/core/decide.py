"""The decision: from what is observed of one asset to the next writes.

A grant is four writes in this order: claim the Lease, record the token, stamp the targets, announce. The end of a
lock goes the other way: the AssetLock becomes terminal, then the Lease passes on or goes, then the stamps are
replaced or removed. Each rule below looks for one of these steps; the first that finds something to do
decides, and the caller observes again. So a crash between any two steps leaves nothing but the next step to do.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator

from assetlock.core import leases, names, queue, statuses, tenure
from assetlock.core.decision import (
    AnnounceOnLease,
    Body,
    Confirmation,
    ConfirmLease,
    ConfirmLockGone,
    ConfirmNoAsset,
    CreateLease,
    Decision,
    DeleteLease,
    DeleteLock,
    Happening,
    PatchTarget,
    ReplaceLease,
    WriteAssetStatus,
    WriteLockStatus,
)
from assetlock.core.observation import Observation, ObservedTarget
from assetlock.core.situation import Ending, Situation
from assetlock.core.stamp import Stamp, StampedHolder
from assetlock.model.assetlock import AssetLock, LockState

LEISURELY_WRITES = 10
"""So many writes that only show things go out between two looks at what is urgent."""


def decide(observation: Observation) -> Decision:
    """The next writes for one asset, and when to look again if nothing happens."""
    situation = Situation(observation)
    for rule in _RULES:
        decision = rule(situation)
        if decision is not None:
            return decision
    return Decision(wake_at=_next_deadline(situation))


def _end_locks(situation: Situation) -> Decision | None:
    """Make AssetLocks terminal whose time is over, before anything else is taken from them."""
    observation, lock, ending = situation.observation, situation.lock, situation.ending
    if lock is not None and ending is not None and not _is_terminal(lock):
        confirm: tuple[ConfirmLease | ConfirmNoAsset, ...] = ()
        if ending.state is LockState.EXPIRED and observation.lease is not None:
            confirm = (ConfirmLease(observation.lease.metadata.resource_version),)
        elif ending.reason == "AssetDeleted":
            confirm = (ConfirmNoAsset(),)
        return Decision(confirm=confirm, writes=(_finish(situation, lock, ending),))
    acquisition = situation.tenure.acquisition if situation.tenure else None
    for other in observation.locks:
        if other.metadata.uid != acquisition and _may_be_announced(situation, other):
            lost = Ending(LockState.REVOKED, "LeaseLost", "its Lease was deleted or taken over")
            version = observation.lease.metadata.resource_version if observation.lease else None
            return Decision(confirm=(ConfirmLease(version),), writes=(_finish(situation, other, lost),))
    return None


def _pass_on(situation: Situation) -> Decision | None:
    """Claim a free Lease for the next in line, hand an ended one over in one write, or delete it."""
    lease = situation.observation.lease
    if situation.holding:
        return None
    if situation.waiters and not situation.obstacle:
        lock = situation.waiters[0]
        body = leases.claimed(situation, lock)
        write = ReplaceLease(body) if lease else CreateLease(body)
        return Decision(confirm=_confirm_gone(situation), writes=(write,))
    if lease is None or lease.metadata.deletion_timestamp is not None:
        return None
    delete = DeleteLease(
        lease.metadata.uid, lease.metadata.resource_version, tells=_told_of_expiry(situation)
    )
    return Decision(confirm=_confirm_gone(situation), writes=(delete,))


def _record(situation: Situation) -> Decision | None:
    """Fix the token: raise the Asset's high-water mark and name the holder there."""
    asset, recorded = situation.observation.asset, situation.recorded
    if asset is None or not situation.holding:
        return None
    outdated = recorded and not situation.announced and situation.token_in_use > recorded.fencing_token
    if recorded is not None and len(asset.status.holders) == 1 and not outdated:
        return None
    announced = situation.token_announced
    token = announced if announced == situation.token_in_use else situation.token_in_use + 1
    entry = statuses.holder_entry(situation, token)
    body = statuses.asset_body(situation, [entry], token)
    return Decision(confirm=_confirm_former_gone(situation), writes=(WriteAssetStatus(body),))


def _stamp(situation: Situation) -> Decision | None:
    """Put the holder's stamp on every target that lacks it; never a lower token over a higher one."""
    recorded = situation.recorded
    if recorded is None or situation.tenure is None or not situation.holding:
        return None
    holder = StampedHolder(recorded.fencing_token, situation.tenure.identity)
    exempt = tuple(asset.spec.exempt) if (asset := situation.observation.asset) else ()
    writes = []
    for target in situation.observation.targets:
        if target.uid is None or target.problem or not target.wanted:
            continue
        stamp = Stamp(target.uid, (holder,), exempt)
        present = situation.stamp(target)
        labelled = target.labels.get(names.FENCED_LABEL) == "true"
        if (present == stamp and labelled) or (present and present.token > holder.token):
            continue
        patch = _target_patch(target, {situation.stamp_key: str(stamp)}, fenced=True)
        writes.append(PatchTarget(target, patch))
    return Decision(writes=tuple(writes)) if writes else None


def _announce(situation: Situation) -> Decision | None:
    """Tell the holder, now that nobody else's write can commit."""
    recorded, lock, lease = situation.recorded, situation.lock, situation.observation.lease
    asset = situation.observation.asset
    if recorded is None or lease is None or asset is None or situation.announced:
        return None
    if not situation.holding or situation.obstacle:
        return None
    token = recorded.fencing_token
    if lock is None:
        told = Happening(
            "Asset",
            asset.metadata.name,
            asset.metadata.uid,
            "Locked",
            f"locked by {recorded.identity}, token {token}",
        )
        return Decision(writes=(AnnounceOnLease(leases.announcement(lease, token), tells=(told,)),))
    note = f"asset {situation.observation.name} locked for {recorded.identity}, token {token}"
    tells = (
        Happening("AssetLock", lock.metadata.name, lock.metadata.uid, "Acquired", note),
        Happening(
            "Asset", asset.metadata.name, asset.metadata.uid, "Locked", f"{note} ({lock.metadata.name})"
        ),
    )
    return Decision(writes=(WriteLockStatus(statuses.held_body(situation, lock, recorded), tells=tells),))


def _clear(situation: Situation) -> Decision | None:
    """With nobody holding: take the holder off the Asset, then the stamps off the targets.

    The Lease is looked for live first: one that was only not seen yet would be a holder left without its fence.
    """
    observation = situation.observation
    lease = observation.lease
    if situation.holding or (lease is not None and lease.metadata.deletion_timestamp is None):
        return None
    confirm: tuple[Confirmation, ...] = (ConfirmLease(lease.metadata.resource_version if lease else None),)
    asset = observation.asset
    if asset is not None and asset.status.holders:
        told = Happening("Asset", asset.metadata.name, asset.metadata.uid, "Unlocked", "the lock is free")
        body = statuses.asset_body(situation, [], situation.token_in_use)
        return Decision(
            confirm=confirm + _confirm_former_gone(situation), writes=(WriteAssetStatus(body, tells=(told,)),)
        )
    writes = [_unstamp(situation, target) for target in observation.targets if _is_stamped(situation, target)]
    return Decision(confirm=confirm, writes=tuple(writes)) if writes else None


def _unstamp_strays(situation: Situation) -> Decision | None:
    """Objects that the asset no longer names are not fenced by it."""
    strays = [t for t in situation.observation.targets if not t.wanted and _is_stamped(situation, t)]
    return Decision(writes=tuple(_unstamp(situation, target) for target in strays)) if strays else None


def _give_up(situation: Situation) -> Decision | None:
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
        elif not queue.waits_at_all(lock) or queue.ran_out(observation, lock):
            reason, why = statuses.waiting_for(situation)
            waited = f"waited {lock.spec.wait}; " if queue.waits_at_all(lock) else ""
            hint = "" if waited else "; set spec.wait to queue"
            reason = "WaitTimeout" if waited else reason
            ending = Ending(LockState.FAILED, reason, f"{waited}{why}{hint}")
        else:
            continue
        confirm: ConfirmLease | ConfirmNoAsset = (
            ConfirmLease(version) if observation.asset is not None else ConfirmNoAsset()
        )
        return Decision(confirm=(confirm,), writes=(_finish(situation, lock, ending),))
    return None


def _renew(situation: Situation) -> Decision | None:
    """A changed ``ttl``, or a changed policy, starts a new term."""
    lock, lease = situation.lock, situation.observation.lease
    if lock is None or lease is None or not situation.holding:
        return None
    ttl = tenure.effective_ttl(lock, situation.observation.asset, situation.observation.limits)
    if lease.spec.lease_duration_seconds == int(ttl.total_seconds()):
        return None
    return Decision(writes=(ReplaceLease(leases.renewed(situation, lock)),))


def _forget(situation: Situation) -> Decision | None:
    """Delete finished AssetLocks when ``ttlSecondsAfterFinished`` is over."""
    acquisition = situation.tenure.acquisition if situation.tenure else None
    writes = [
        DeleteLock(lock.metadata.name, lock.metadata.uid, lock.metadata.resource_version)
        for lock in situation.observation.locks
        if lock.metadata.uid != acquisition
        and lock.metadata.deletion_timestamp is None
        and (forget_at := _forget_at(lock)) is not None
        and forget_at <= situation.observation.now
    ]
    return Decision(writes=tuple(writes)) if writes else None


def _show(situation: Situation) -> Decision | None:
    """Bring places in the queue, expiry times and the Asset's summary up to date."""
    writes = list(_shown(situation))
    if not writes:
        return None
    return Decision(
        writes=tuple(writes[:LEISURELY_WRITES]), leisurely=True, wake_at=_next_deadline(situation)
    )


def _shown(situation: Situation) -> Iterator[WriteLockStatus | WriteAssetStatus]:
    asset, lock = situation.observation.asset, situation.lock
    holders = list(asset.status.holders) if asset else []
    if situation.holding and situation.recorded is not None:
        holders = [statuses.holder_entry(situation, situation.recorded.fencing_token)]
    if asset is not None:
        body = statuses.asset_body(situation, holders, asset.status.fencing_token)
        if _differs(body, asset.status.model_dump(mode="json", by_alias=True, exclude_none=True)):
            yield WriteAssetStatus(body)
    if situation.announced and situation.holding and lock is not None:
        body = statuses.held_body(situation, lock, holders[0])
        if _differs(body, lock.status.model_dump(mode="json", by_alias=True, exclude_none=True)):
            yield WriteLockStatus(body)
    for position, waiter in enumerate(situation.waiters, start=1):
        if _is_off(waiter, position):
            yield WriteLockStatus(statuses.pending_body(situation, waiter, position))


def _is_off(waiter: AssetLock, position: int) -> bool:
    shown = waiter.status.queue_position
    if waiter.status.state is None or shown is None:
        return True
    return shown != position if position <= queue.SHOWN else shown >= 2 * position


def _differs(body: Body, status: Body) -> bool:
    return bool(body["status"] != status)


def _finish(situation: Situation, lock: AssetLock, ending: Ending) -> WriteLockStatus:
    told = Happening(
        "AssetLock",
        lock.metadata.name,
        lock.metadata.uid,
        str(ending.state),
        ending.message,
        warning=ending.state is not LockState.RELEASED,
    )
    return WriteLockStatus(statuses.finished_body(situation, lock, ending), tells=(told,))


def _may_be_announced(situation: Situation, lock: AssetLock) -> bool:
    """Whether it was announced, or recorded, so that one who slept since may yet announce it."""
    asset = situation.observation.asset
    recorded = asset is not None and any(h.acquisition == lock.metadata.uid for h in asset.status.holders)
    return lock.status.state is LockState.HELD or (recorded and queue.is_pending(lock))


def _confirm_former_gone(situation: Situation) -> tuple[ConfirmLockGone, ...]:
    """Nobody is taken off the Asset who might still be announced: AssetLocks that are not known are looked for."""
    asset, held = situation.observation.asset, situation.tenure
    known = {lock.metadata.uid for lock in situation.observation.locks} | {held.acquisition if held else ""}
    former = asset.status.holders if asset else []
    return tuple(
        ConfirmLockGone(entry.lock, entry.acquisition)
        for entry in former
        if entry.lock is not None and entry.acquisition not in known
    )


def _confirm_gone(situation: Situation) -> tuple[ConfirmLockGone, ...]:
    held, ending = situation.tenure, situation.ending
    if held is None or ending is None or ending.confirmed or held.lock_name is None:
        return ()
    return (ConfirmLockGone(held.lock_name, held.acquisition),)


def _told_of_expiry(situation: Situation) -> tuple[Happening, ...]:
    asset, ending, held = situation.observation.asset, situation.ending, situation.tenure
    if asset is None or ending is None or held is None or held.lock_name is not None:
        return ()
    note = f"the Lease of {held.identity.username} was {ending.message}"
    return (Happening("Asset", asset.metadata.name, asset.metadata.uid, "LeaseExpired", note, warning=True),)


def _is_stamped(situation: Situation, target: ObservedTarget) -> bool:
    return target.uid is not None and situation.stamp_key in target.annotations


def _unstamp(situation: Situation, target: ObservedTarget) -> PatchTarget:
    others = any(
        key.endswith(names.STAMP_SUFFIX) and key != situation.stamp_key for key in target.annotations
    )
    return PatchTarget(target, _target_patch(target, {situation.stamp_key: None}, fenced=others))


def _target_patch(target: ObservedTarget, annotations: dict[str, str | None], *, fenced: bool) -> Body:
    return {
        "metadata": {
            "uid": target.uid,
            "resourceVersion": target.resource_version,
            "labels": {names.FENCED_LABEL: "true" if fenced else None},
            "annotations": annotations,
        }
    }


def _is_terminal(lock: AssetLock) -> bool:
    return lock.status.state is not None and lock.status.state.terminal


def _forget_at(lock: AssetLock) -> datetime.datetime | None:
    if lock.spec.ttl_seconds_after_finished is None or lock.status.finish_time is None:
        return None
    return lock.status.finish_time + datetime.timedelta(seconds=lock.spec.ttl_seconds_after_finished)


def _next_deadline(situation: Situation) -> datetime.datetime | None:
    deadlines = [queue.next_deadline(situation.observation, situation.waiters)]
    if situation.tenure is not None and situation.holding:
        deadlines.append(situation.tenure.deadline)
    deadlines += [_forget_at(lock) for lock in situation.observation.locks]
    return min((moment for moment in deadlines if moment is not None), default=None)


_RULES: tuple[Callable[[Situation], Decision | None], ...] = (
    _end_locks,
    _pass_on,
    _record,
    _stamp,
    _announce,
    _clear,
    _unstamp_strays,
    _renew,
    _give_up,
    _forget,
    _show,
)
