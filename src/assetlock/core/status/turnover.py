"""Events on the Asset that say whose lock has begun or ended, and why, in the words of the AssetLock's own."""

from __future__ import annotations

from assetlock.core.decision import Event
from assetlock.core.identity import LOCK_DELAY
from assetlock.core.locks import queue
from assetlock.core.locks.lock import acquisition_of
from assetlock.core.messages import acquired_by
from assetlock.core.situation import Situation
from assetlock.core.status.asset import shown_as
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.conditions import find_condition


def whose(holder: Holder) -> str:
    """Whose a lock is."""
    return acquired_by(shown_as(holder.identity), holder.lock, holder.fencing_token)


def ended(situation: Situation) -> tuple[Event, ...]:
    """An Event for each holder that the Asset names and that does not hold any more."""
    asset = situation.observation.asset
    if asset is None:
        return ()
    return tuple(
        Event.about(asset, "Unlocked", f"no longer locked by {whose(holder)}: {why}", warning=not released)
        for holder in situation.former
        for why, released in [_why(situation, holder)]
    )


def _why(situation: Situation, holder: Holder) -> tuple[str, bool]:
    """Why it ended, and whether its holder released it, as far as the objects that are left say so."""
    if holder.identity == LOCK_DELAY.username:
        return "the lockDelay has ended", True
    lock = next((k for k in situation.observation.locks if acquisition_of(k) == holder.acquisition), None)
    if lock is not None and queue.has_ended(lock):
        return _of(lock)
    for acquisition in situation.acquisitions:
        if acquisition.id == holder.acquisition and acquisition.ending is not None:
            return acquisition.ending.message, acquisition.ending.state is LockState.RELEASED
    return f"its {'AssetLock' if holder.lock else 'Lease'} is gone", True


def _of(lock: AssetLock) -> tuple[str, bool]:
    finished = find_condition(lock.status.conditions, "Finished")
    state = lock.status.state
    return f"{state}, {finished.message if finished else ''}".rstrip(", "), state is LockState.RELEASED
