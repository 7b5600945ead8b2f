"""That maintenance windows have the locks that they are to have, and no others."""

from __future__ import annotations

import datetime

from assetlock.core.decision import CreateLock, Decision, DeleteLock
from assetlock.core.situation import Situation
from assetlock.core.windows import window_locks

LOOK_AGAIN = datetime.timedelta(days=1)
"""How soon a closure is looked at again of which it is not known when it ends."""


def keep(situation: Situation) -> Decision | None:
    """Make the lock that belongs to the asset's closure, then end those of windows that are over or have changed."""
    observation, closure = situation.observation, situation.gate.closure
    if closure is not None and window_locks.missing(closure, observation):
        return Decision(writes=(CreateLock(window_locks.body_of(closure, observation)),))
    hopeless = situation.unprotected is not None
    writes = tuple(
        DeleteLock(lock.metadata.name, lock.metadata.uid, lock.metadata.resource_version)
        for lock in window_locks.out_of_place(closure, observation, hopeless=hopeless)
    )
    return Decision(writes=writes) if writes else None


def next_deadline(situation: Situation) -> datetime.datetime | None:
    """When a window opens or closes."""
    now = situation.observation.now
    change = situation.gate.closings.next_change(now)
    if change is None and situation.gate.closure is not None:
        return now + LOOK_AGAIN
    return change
