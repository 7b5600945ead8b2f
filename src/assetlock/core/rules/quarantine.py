"""Assets that nobody gets for a while, or until a person has looked: lockDelay and quarantine.

Whoever's lock has ended so is followed in one write by nobody, who holds the same Leases, is recorded with a token
of its own and stamped. So what keeps others out survives restarts and the end of the AssetLock, as every lock does.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Iterator

from assetlock.core.acquisition import HOLDER_FAILED, Acquisition
from assetlock.core.decision import Body, CreateLease, Decision, ReplaceLease
from assetlock.core.identity import LOCK_DELAY, QUARANTINE, Identity
from assetlock.core.locks.lock import acquisition_of
from assetlock.core.locks.ttl import lock_delay
from assetlock.core.rules import lease_bodies
from assetlock.core.situation import Situation
from assetlock.core.status.asset import holder_entry
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.conditions import reason_of

_NOT_RELEASED = frozenset({LockState.EXPIRED, LockState.REVOKED})


@dataclasses.dataclass(frozen=True, slots=True)
class Withholding:
    """By which nobody, since when and for how long; a quarantine has no end."""

    identity: Identity
    began: datetime.datetime
    lasts: datetime.timedelta


def withhold(situation: Situation) -> Decision | None:
    """Keep the Leases of a lock that was not released, before they pass on."""
    if situation.obstacle and situation.observation.revocation is None:
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
            left = [slot for slot in acquisition.claim.slots if slot in situation.vacant]
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
        yield (
            slot,
            lease_bodies.withheld(situation.observation, slot, former, why.identity, why.began, why.lasts),
        )


def _why(situation: Situation, acquisition: Acquisition) -> Withholding | None:
    ending, deadline = acquisition.ending, acquisition.claim.deadline
    if ending is None or acquisition.claim.withheld:
        return None
    if acquisition.lock is not None:
        return _why_after(situation, acquisition.lock)
    if not _is_followed_by_delay(ending.state, ending.reason) or not acquisition.recorded:
        return None
    began = deadline if ending.state is LockState.EXPIRED else None
    return _delay(situation, began or situation.observation.now)


def _why_after(situation: Situation, lock: AssetLock) -> Withholding | None:
    """Why others are kept out after this lock. One that was never held is followed at once."""
    status = lock.status
    if status.acquire_time is None or status.finish_time is None or lock.metadata.deletion_timestamp:
        return None
    if status.state is LockState.QUARANTINED and situation.observation.revocation is None:
        return Withholding(QUARANTINE, situation.observation.now, datetime.timedelta())
    why = reason_of(status.conditions, "Finished")
    if status.state is None or not _is_followed_by_delay(status.state, why):
        return None
    return _delay(situation, status.finish_time)


def _is_followed_by_delay(state: LockState, reason: str) -> bool:
    """Whether a lock that ended so was not released. Maintenance that sent it away follows at once."""
    return reason == HOLDER_FAILED or (state in _NOT_RELEASED and reason != "Maintenance")


def _delay(situation: Situation, began: datetime.datetime) -> Withholding | None:
    """What is left of it; a time in a record counts only as far as it is past."""
    now, lasts = situation.observation.now, lock_delay(situation.observation.asset)
    began = min(began, now)
    return Withholding(LOCK_DELAY, began, lasts) if began + lasts > now else None
