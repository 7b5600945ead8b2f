"""The decision: from what is observed of one asset to the next writes.

A grant is four writes in this order: claim the Lease, record the token, stamp the targets, announce; an Exclusive
lock claims the Leases of all slots. The end of a lock goes the other way: the AssetLock becomes terminal, then its
Leases pass on or go, then the stamps are replaced or removed. Where targets have subresources, a guard on their
namespace goes up before the stamps and comes down after them. The record says too where stamps will be; where that
changes meanwhile, the Asset says so before the next stamp. Each rule looks for one of these steps; the first that
finds something to do decides, and the caller observes again. So a crash between any two steps leaves nothing but the
next step to do.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable

from assetlock.core.decision import Decision
from assetlock.core.fence import break_glass
from assetlock.core.locks import queue
from assetlock.core.observation import Observation
from assetlock.core.rules import (
    ending,
    fencing_namespaces,
    granting,
    maintenance,
    quarantine,
    refreshing,
    stamping,
)
from assetlock.core.situation import Situation

LEISURELY_WRITES = 10
"""So many writes that only show things go out between two looks at what is urgent."""


def decide(observation: Observation) -> Decision:
    """The next writes for one asset, and when to look again if nothing happens."""
    situation = Situation(observation)
    for rule in _REVOKING if observation.revocation else _RULES:
        decision = rule(situation)
        if decision is not None:
            return decision
    return Decision(wake_at=_next_deadline(situation))


def _show(situation: Situation) -> Decision | None:
    """Bring places in the queue, expiry times and the Asset's summary up to date."""
    writes = tuple(itertools.islice(refreshing.out_of_date(situation), LEISURELY_WRITES))
    if not writes:
        return None
    return Decision(writes=writes, leisurely=True, wake_at=_next_deadline(situation))


def _next_deadline(situation: Situation) -> datetime.datetime | None:
    """When time changes the decision. A deadline that has passed without a write is waiting for something else."""
    deadlines: list[datetime.datetime | None] = [*situation.patient.values()]
    deadlines += [acquisition.claim.deadline for acquisition in situation.active]
    if situation.observation.asset is not None:
        deadlines.append(break_glass.next_deadline(situation.observation.asset.status.broken_glass))
    deadlines.append(maintenance.next_deadline(situation))
    deadlines += [queue.forget_at(lock) for lock in situation.observation.locks]
    deadlines += [each.lock.spec.renew_time for each in situation.active if each.lock is not None]
    deadlines.append(situation.observation.behind.next_deadline)
    now = situation.observation.now
    return min((moment for moment in deadlines if moment is not None and moment > now), default=None)


_RULES: tuple[Callable[[Situation], Decision | None], ...] = (
    ending.end_locks,
    quarantine.withhold,
    granting.pass_on,
    granting.record,
    stamping.list_places,
    fencing_namespaces.put_up,
    stamping.stamp,
    granting.announce,
    stamping.clear,
    stamping.unstamp_strays,
    fencing_namespaces.take_down,
    granting.rebind,
    granting.renew,
    ending.give_up,
    ending.forget,
    maintenance.keep,
    _show,
)

_TAKING_DOWN = {stamping.clear, stamping.unstamp_strays, fencing_namespaces.take_down}
_BY_HAND = {ending.end_locks, quarantine.withhold, granting.pass_on, *_TAKING_DOWN}
_REVOKING = [rule for rule in _RULES if rule in _BY_HAND]
"""By hand, what holds the lock is ended in the same order; all else is left to the operator."""
