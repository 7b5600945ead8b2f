"""What is only shown: places in the queue, expiry times, the Asset's summary.

Of those in line the first ones are shown exactly with each decision; the others apart from it, about where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from assetlock.core.decision import WriteAssetStatus, WriteLockStatus
from assetlock.core.locks import queue
from assetlock.core.locks.lock import is_joint
from assetlock.core.situation import Situation
from assetlock.core.status import asset as asset_status
from assetlock.core.status import assetlock as lock_status
from assetlock.model.assetlock import AssetLock
from assetlock.model.conditions import reason_of


def out_of_date(situation: Situation) -> Iterator[WriteLockStatus | WriteAssetStatus]:
    """The writes that bring what is shown up to date, the most telling first."""
    asset = situation.observation.asset
    entries = {
        holder.id: asset_status.holder_entry(holder, holder.recorded.fencing_token)
        for holder in situation.holders
        if holder.recorded
    }
    if asset is not None:
        kept = [entries.get(entry.acquisition, entry) for entry in asset.status.holders]
        if situation.unseen is None:
            shown = asset_status.status_of(situation, kept, situation.mark)
        else:
            shown = asset_status.unseen(situation, asset)
        if shown != asset.status:
            yield asset_status.write(situation, shown)
    for holder in situation.holders:
        if holder.lock is not None and holder.announced and not is_joint(holder.lock):
            status = lock_status.held(situation, holder, holder.lock, entries[holder.id])
            if status != holder.lock.status:
                yield WriteLockStatus(lock_status.body(situation, holder.lock, status))
    for holder in situation.holders if situation.held_up else ():
        if holder.lock and not holder.announced and _is_untold(situation, holder.lock):
            status = lock_status.pending(situation, holder.lock, 1)
            yield WriteLockStatus(lock_status.body(situation, holder.lock, status))
    for waiter in situation.waiters:
        if waiter.metadata.uid not in situation.observation.behind.ahead and _is_off(situation, waiter):
            yield _place(situation, waiter)


def _is_untold(situation: Situation, lock: AssetLock) -> bool:
    """Whether a lock that has its Leases does not say yet why it is not announced."""
    reason, _ = lock_status.waiting_for(situation, lock)
    return not is_joint(lock) and reason_of(lock.status.conditions, "Settled") != reason


def far_back(situation: Situation, uids: Collection[str]) -> Iterator[WriteLockStatus]:
    """The writes that show of these waiters about where in line they are, and why they wait."""
    for waiter in situation.waiters:
        if waiter.metadata.uid in uids and not is_joint(waiter):
            yield _place(situation, waiter)


def _place(situation: Situation, waiter: AssetLock) -> WriteLockStatus:
    status = lock_status.pending(situation, waiter, situation.places[waiter.metadata.uid])
    return WriteLockStatus(lock_status.body(situation, waiter, status))


def _is_off(situation: Situation, waiter: AssetLock) -> bool:
    """The first in line are shown exactly where they are and why; the others, about where."""
    status, position = waiter.status, situation.places[waiter.metadata.uid]
    if is_joint(waiter):
        return False
    if position > queue.SHOWN or status.state is None or status.queue_position is None:
        return queue.is_shown_far_off(waiter, position)
    reason, _ = lock_status.waiting_for(situation, waiter)
    shown = reason_of(status.conditions, "Settled")
    ahead = lock_status.waits_for(situation, waiter, position)
    return (status.queue_position, status.waits_for, shown) != (position, ahead, reason)
