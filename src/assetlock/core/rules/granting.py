"""How locks are granted, handed over and renewed: claim Leases, record the tokens, announce.

A Lease is a slot, and whoever has it keeps everybody else out of it, those too who make Leases by hand. A Shared
lock needs one slot; an Exclusive one collects all of them, and while it does, what comes free goes to no one else.
Who holds is settled when it is recorded on the Asset, in one write that compares and swaps.
"""

from __future__ import annotations

from collections.abc import Iterator

from assetlock.core import pods
from assetlock.core.acquisition import Acquisition, needs_all
from assetlock.core.decision import (
    AnnounceOnLease,
    ConfirmAsset,
    Confirmation,
    ConfirmPod,
    CreateLease,
    Decision,
    DeleteLease,
    Event,
    ReplaceLease,
    WriteLockStatus,
)
from assetlock.core.identity import owner_of
from assetlock.core.locks import queue
from assetlock.core.locks.lock import (
    acquisition_of,
    assets_of,
    is_joint,
    is_whole,
    may_tell,
    steps_aside,
    tell,
)
from assetlock.core.observation import ObservedLease
from assetlock.core.rules import lease_bodies
from assetlock.core.rules.live_reads import (
    confirm_absent,
    confirm_ended,
    confirm_former_gone,
    confirm_not_over,
)
from assetlock.core.rules.stamping import shuts_out
from assetlock.core.situation import Situation
from assetlock.core.status import asset as asset_status
from assetlock.core.status import assetlock as lock_status
from assetlock.core.status import turnover
from assetlock.core.windows import term
from assetlock.model.assetlock import AssetLock


def pass_on(situation: Situation) -> Decision | None:
    """Claim vacant slots for the next in line, handing ended ones over in one write; free what nobody takes."""
    observation = situation.observation
    for lock, slots, like in _claims(situation):
        left = [observed for slot in slots if (observed := situation.vacant[slot])]
        bodies = [lease_bodies.claimed(observation, slot, lock, like) for slot in slots]
        writes = (
            ReplaceLease(body) if situation.vacant[slot] else CreateLease(body)
            for slot, body in zip(slots, bodies, strict=True)
        )
        confirm = (*confirm_ended(situation, left), *confirm_alive(lock))
        return Decision(confirm=confirm, writes=tuple(writes))
    left = [
        observed
        for observed in situation.vacant.values()
        if observed and not lease_bodies.rests(observed.lease)
    ]
    if left:
        freed = tuple(_freeing(situation, observed) for observed in left)
        return Decision(confirm=confirm_ended(situation, left), writes=freed, independent=True)
    return _give_back(situation)


def _claims(situation: Situation) -> Iterator[tuple[AssetLock, list[int], ObservedLease | None]]:
    """Who may claim which slots now, and a Lease that says until when, if there is one."""
    if situation.obstacle:
        return
    for holder in situation.holders:
        lacking = [slot for slot in range(situation.observation.capacity) if slot in situation.vacant]
        if holder.lock is not None and holder.exclusive and lacking:
            yield holder.lock, lacking, holder.claim.term
    for lock in situation.waiters:
        if situation.refusal(lock):
            continue
        if is_joint(lock):
            if steps_aside(lock):
                continue
            return
        slots = within_reach(situation, lock)
        if slots:
            yield lock, slots, None
        if slots or queue.waits_at_all(lock):
            return


def within_reach(situation: Situation, lock: AssetLock) -> list[int]:
    """The slots that the lock may claim now.

    One that does not wait, or needs other assets as well, takes what it needs here at once, or nothing.
    """
    vacant = [slot for slot in range(situation.observation.capacity) if slot in situation.vacant]
    if not needs_all(lock):
        room = situation.has_room(situation.holders)
        return [min(vacant, key=lambda slot: _rank_of(situation, slot))] if vacant and room else []
    own = next((a.claim.slots for a in situation.collectors if a.id == acquisition_of(lock)), [])
    suffices = not situation.holders and len({*vacant, *own}) >= situation.observation.capacity
    collects = queue.waits_at_all(lock) and not is_joint(lock)
    return vacant if suffices or collects else []


def _rank_of(situation: Situation, slot: int) -> tuple[bool, bool, int]:
    """Rather one that can be claimed now, and rather one that leaves no Lease over."""
    return slot in situation.stuck_slots, situation.vacant[slot] is None, slot


def _give_back(situation: Situation) -> Decision | None:
    """Only the first in line that needs all slots collects them: the Leases of others that don't hold go.

    A lock over several assets gives them back for all of them at once, elsewhere.
    """
    asset = situation.observation.asset
    waiters = [lock for lock in situation.waiters if not is_joint(lock)]
    first = next((lock for lock in waiters if needs_all(lock) and queue.waits_at_all(lock)), None)
    others = {lock.metadata.uid for lock in waiters} - {first.metadata.uid if first else ""}
    for collector in situation.collectors:
        if asset is not None and collector.id in others:
            freed = tuple(_freeing(situation, observed) for observed in collector.claim.leases)
            return Decision(confirm=(ConfirmAsset(asset.metadata.resource_version),), writes=freed)
    return None


def _freeing(situation: Situation, observed: ObservedLease) -> DeleteLease | ReplaceLease:
    meta, told = observed.lease.metadata, _told_of_expiry(situation, observed)
    if lease_bodies.is_kept(observed.lease):
        return ReplaceLease(lease_bodies.freed(situation.observation, observed), events=told)
    return DeleteLease(observed.name, meta.uid, meta.resource_version, events=told)


def record(situation: Situation) -> Decision | None:
    """Fix the tokens: raise the Asset's high-water mark and name the holders there."""
    asset, holders = situation.observation.asset, situation.holders
    if asset is None or not holders:
        return None
    new = [holder for holder in holders if _needs_token(situation, holder)]
    if not new and len(asset.status.holders) == len(holders):
        return None
    highest, entries = situation.token_in_use, []
    for holder in holders:
        told = holder.token_announced
        if holder.recorded is not None and holder not in new:
            token = holder.recorded.fencing_token
        elif told is not None and told > situation.stray_token:
            token = told
        else:
            token = highest = highest + 1
        entries.append(asset_status.holder_entry(holder, token))
    entries.sort(key=lambda entry: entry.fencing_token)
    confirm: tuple[Confirmation, ...] = (*confirm_former_gone(situation), *confirm_not_over(new))
    status = asset_status.status_of(situation, entries, entries[-1].fencing_token)
    events = turnover.ended(situation)
    return Decision(confirm=confirm, writes=(asset_status.write(situation, status, *events),))


def _needs_token(situation: Situation, holder: Acquisition) -> bool:
    if holder.recorded is None:
        return True
    return not holder.announced and situation.stray_token > holder.recorded.fencing_token


def announce(situation: Situation) -> Decision | None:
    """Tell the holder with the lowest token that has not been told, now that nobody else's write can commit."""
    asset = situation.observation.asset
    if asset is None or situation.obstacle or shuts_out(situation):
        return None
    untold = [
        (holder.recorded, holder)
        for holder in situation.holders
        if holder.recorded is not None and not holder.announced and _may_be_told(situation, holder)
    ]
    if not untold:
        return None
    entry, holder = min(untold, key=lambda pair: pair[0].fencing_token)
    confirm = confirm_absent(situation)
    if holder.lock is None:
        told = Event.about(asset, "Locked", f"locked by {turnover.whose(entry)}")
        patch = lease_bodies.announcement(holder.primary.lease, entry.fencing_token)
        return Decision(confirm, writes=(AnnounceOnLease(holder.primary.name, patch, events=(told,)),))
    note = f"asset {situation.observation.name} is locked by {turnover.whose(entry)}"
    locked = Event.about(asset, "Locked", f"locked by {turnover.whose(entry)}")
    fenced = tell(holder.lock, situation.observation.name, entry.fencing_token)
    if is_joint(holder.lock) and not is_whole(holder.lock, fenced):
        status = lock_status.fenced(situation, holder.lock, fenced)
        body = lock_status.body(situation, holder.lock, status)
        return Decision(confirm, writes=(WriteLockStatus(body, events=(locked,)),))
    if is_joint(holder.lock):
        note = f"assets {', '.join(assets_of(holder.lock))} are locked by {entry.identity} (AssetLock {entry.lock})"
    status = lock_status.held(situation, holder, holder.lock, entry, fenced)
    body = lock_status.body(situation, holder.lock, status)
    events = (Event.about(holder.lock, "Acquired", note), locked)
    return Decision(confirm, writes=(WriteLockStatus(body, events=events),))


def _may_be_told(situation: Situation, holder: Acquisition) -> bool:
    lock = holder.lock
    return lock is None or not is_joint(lock) or may_tell(lock, situation.observation.name)


def renew(situation: Situation) -> Decision | None:
    """A changed ``ttl``, policy or maintenance window starts a new term."""
    observation = situation.observation
    for holder in situation.holders:
        if holder.lock is None or is_joint(holder.lock):
            continue
        if not term.is_right(observation, holder.lock, holder.claim):
            return Decision(writes=(ReplaceLease(lease_bodies.renewed(observation, holder, holder.lock)),))
    return None


def rebind(situation: Situation) -> Decision | None:
    """A lock that was moved to another credential of its holder: its Lease says so, to whoever renews that."""
    for holder in situation.holders:
        if (
            holder.lock is None
            or owner_of(holder.primary.lease.metadata.annotations) == holder.claim.identity
        ):
            continue
        body = lease_bodies.rebound(situation.observation, holder, holder.lock)
        return Decision(writes=(ReplaceLease(body),))
    return None


def confirm_alive(lock: AssetLock) -> tuple[ConfirmPod, ...]:
    """A waiter's pod may have ended unseen: not every one is watched."""
    pod = pods.holds_for(lock)
    return (ConfirmPod(pod, ended=False),) if pod else ()


def _told_of_expiry(situation: Situation, observed: ObservedLease) -> tuple[Event, ...]:
    asset = situation.observation.asset
    ended = (a for a in situation.acquisitions if a.by_hand and a.primary is observed)
    for acquisition in ended:
        whose, ending = f"the Lease of {acquisition.claim.identity.username}", acquisition.ending
        if asset and ending and ending.pod is not None:
            return (Event.about(asset, ending.reason, f"{whose} was released: {ending.message}"),)
        if asset and ending:
            reason = "LeaseRevoked" if ending.reason == "Revoked" else "LeaseExpired"
            return (Event.about(asset, reason, f"{whose} was {ending.message}", warning=True),)
    return ()
