"""Assets that nobody gets for a while, or until a person has looked: lockDelay and quarantine.

Whoever's lock has ended so is followed in one write by nobody, who holds the same Leases, is recorded with a token
of its own and stamped. So what keeps others out survives restarts and the end of the AssetLock, as every lock does.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Iterator

from assetlock.core import leases, tenure
from assetlock.core.acquisition import Acquisition
from assetlock.core.asset_status import holder_entry
from assetlock.core.decision import Body, CreateLease, Decision, ReplaceLease
from assetlock.core.identity import LOCK_DELAY, QUARANTINE, Identity
from assetlock.core.joint import acquisition_of
from assetlock.core.situation import Situation
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, LockState

_NOT_RELEASED = frozenset({LockState.EXPIRED, LockState.REVOKED})


@dataclasses.dataclass(frozen=True, slots=True)
class Withholding:
    """By which nobody, since when and for how long; a quarantine has no end."""

    identity: Identity
    began: datetime.datetime
    lasts: datetime.timedelta


def withhold(situation: Situation) -> Decision | None:
    """Keep the Leases of a lock that was not released, before they pass on."""
    if situation.obstacle:
        return None
    writes = tuple(
        ReplaceLease(body) if situation.observation.lease(slot) else CreateLease(body)
        for slot, body in (*_kept(situation), *_lost(situation))
    )
    return Decision(writes=writes) if writes else None


def _kept(situation: Situation) -> Iterator[tuple[int, Body]]:
    for acquisition in situation.acquisitions:
        why = _why(situation, acquisition)
        if why is not None:
            former = acquisition.recorded or holder_entry(acquisition, 0)
            left = [slot for slot in acquisition.tenure.slots if slot in situation.vacant]
            yield from _bodies(situation, former, left, why)


def _lost(situation: Situation) -> Iterator[tuple[int, Body]]:
    """The Leases of a revoked lock that are gone: the Asset still says which they were."""
    locks = {acquisition_of(lock): lock for lock in situation.observation.locks}
    for former in situation.former:
        lock = locks.get(former.acquisition)
        why = _why_after(situation, lock) if lock else None
        if why is not None:
            gone = [slot for slot in former.slots if not situation.observation.lease(slot)]
            yield from _bodies(situation, former, gone, why)


def _bodies(
    situation: Situation, former: Holder, slots: Iterable[int], why: Withholding
) -> Iterator[tuple[int, Body]]:
    for slot in slots:
        yield slot, leases.withheld(situation.observation, slot, former, why.identity, why.began, why.lasts)


def _why(situation: Situation, acquisition: Acquisition) -> Withholding | None:
    ending, deadline = acquisition.ending, acquisition.tenure.deadline
    if ending is None or acquisition.tenure.withheld:
        return None
    if acquisition.lock is not None:
        return _why_after(situation, acquisition.lock)
    if ending.state is LockState.EXPIRED and acquisition.recorded and deadline is not None:
        return _delay(situation, deadline)
    return None


def _why_after(situation: Situation, lock: AssetLock) -> Withholding | None:
    """Why others are kept out after this lock. One that was never held is followed at once."""
    status = lock.status
    if status.acquire_time is None or status.finish_time is None or lock.metadata.deletion_timestamp:
        return None
    if status.state is LockState.QUARANTINED:
        return Withholding(QUARANTINE, situation.observation.now, datetime.timedelta())
    for_maintenance = any(c.type == "Finished" and c.reason == "Maintenance" for c in status.conditions)
    if status.state not in _NOT_RELEASED or for_maintenance:
        return None
    return _delay(situation, status.finish_time)


def _delay(situation: Situation, began: datetime.datetime) -> Withholding | None:
    lasts = tenure.lock_delay(situation.observation.asset)
    ends = began + lasts
    return Withholding(LOCK_DELAY, began, lasts) if lasts and ends > situation.observation.now else None
