"""How a lock is granted, handed over and renewed: claim the Lease, record the token, announce."""

from __future__ import annotations

from assetlock.core import leases, pods, statuses, tenure
from assetlock.core.decision import (
    AnnounceOnLease,
    Confirmation,
    ConfirmLease,
    ConfirmLockGone,
    ConfirmPod,
    CreateLease,
    Decision,
    DeleteLease,
    Happening,
    ReplaceLease,
    WriteAssetStatus,
    WriteLockStatus,
)
from assetlock.core.situation import Situation
from assetlock.model.assetlock import AssetLock


def pass_on(situation: Situation) -> Decision | None:
    """Claim a free Lease for the next in line, hand an ended one over in one write, or delete it."""
    lease = situation.observation.lease
    if situation.holding:
        return None
    if situation.waiters and not situation.obstacle:
        lock = situation.waiters[0]
        body = leases.claimed(situation, lock)
        write = ReplaceLease(body) if lease else CreateLease(body)
        return Decision(confirm=(*_confirm_gone(situation), *_confirm_alive(lock)), writes=(write,))
    if lease is None or lease.metadata.deletion_timestamp is not None:
        return None
    delete = DeleteLease(
        lease.metadata.uid, lease.metadata.resource_version, tells=_told_of_expiry(situation)
    )
    return Decision(confirm=_confirm_gone(situation), writes=(delete,))


def record(situation: Situation) -> Decision | None:
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
    confirm: tuple[Confirmation, ...] = (*confirm_former_gone(situation), *confirm_not_over(situation))
    return Decision(confirm=confirm, writes=(WriteAssetStatus(body),))


def announce(situation: Situation) -> Decision | None:
    """Tell the holder, now that nobody else's write can commit."""
    recorded, lock, lease = situation.recorded, situation.lock, situation.observation.lease
    asset = situation.observation.asset
    if recorded is None or lease is None or asset is None or situation.announced:
        return None
    if not situation.holding or situation.obstacle:
        return None
    token = recorded.fencing_token
    if lock is None:
        told = Happening.about(asset, "Locked", f"locked by {recorded.identity}, token {token}")
        return Decision(writes=(AnnounceOnLease(leases.announcement(lease, token), tells=(told,)),))
    note = f"asset {situation.observation.name} locked for {recorded.identity}, token {token}"
    tells = (
        Happening.about(lock, "Acquired", note),
        Happening.about(asset, "Locked", f"{note} ({lock.metadata.name})"),
    )
    return Decision(writes=(WriteLockStatus(statuses.held_body(situation, lock, recorded), tells=tells),))


def renew(situation: Situation) -> Decision | None:
    """A changed ``ttl``, or a changed policy, starts a new term."""
    lock, lease = situation.lock, situation.observation.lease
    if lock is None or lease is None or not situation.holding:
        return None
    ttl = tenure.effective_ttl(lock, situation.observation.asset, situation.observation.limits)
    if lease.spec.lease_duration_seconds == int(ttl.total_seconds()):
        return None
    return Decision(writes=(ReplaceLease(leases.renewed(situation, lock)),))


def confirm_not_over(situation: Situation) -> tuple[ConfirmLease, ...]:
    """Who was announced had all of it; if something lacks now, perhaps the Lease has ended unseen."""
    lease = situation.observation.lease
    if lease is None or situation.token_announced is None:
        return ()
    return (ConfirmLease(lease.metadata.resource_version),)


def confirm_former_gone(situation: Situation) -> tuple[ConfirmLockGone, ...]:
    """Nobody is taken off the Asset who might still be announced: AssetLocks that are not known are looked for."""
    asset, held = situation.observation.asset, situation.tenure
    known = {lock.metadata.uid for lock in situation.observation.locks} | {held.acquisition if held else ""}
    former = asset.status.holders if asset else []
    return tuple(
        ConfirmLockGone(entry.lock, entry.acquisition)
        for entry in former
        if entry.lock is not None and entry.acquisition not in known
    )


def _confirm_gone(situation: Situation) -> tuple[Confirmation, ...]:
    held, ending = situation.tenure, situation.ending
    if held is None or ending is None:
        return ()
    if ending.pod is not None:
        return (ConfirmPod(ending.pod, ended=True),)
    if ending.confirmed or held.lock_name is None:
        return ()
    return (ConfirmLockGone(held.lock_name, held.acquisition),)


def _confirm_alive(lock: AssetLock) -> tuple[ConfirmPod, ...]:
    """A waiter's pod may have ended unseen: not every one is watched."""
    pod = pods.holds_for(lock)
    return (ConfirmPod(pod, ended=False),) if pod else ()


def _told_of_expiry(situation: Situation) -> tuple[Happening, ...]:
    asset, ending, held = situation.observation.asset, situation.ending, situation.tenure
    if asset is None or ending is None or held is None or held.lock_name is not None:
        return ()
    whose = f"the Lease of {held.identity.username}"
    if ending.pod is not None:
        return (Happening.about(asset, ending.reason, f"{whose} was released: {ending.message}"),)
    return (Happening.about(asset, "LeaseExpired", f"{whose} was {ending.message}", warning=True),)
