"""The decision: from what is observed of one asset to the next writes.

A grant is four writes in this order: claim the Lease, record the token, stamp the targets, announce; an Exclusive
lock claims the Leases of all slots. The end of a lock goes the other way: the AssetLock becomes terminal, then its
Leases pass on or go, then the stamps are replaced or removed. Where targets have subresources, a guard on their
namespace goes up before the stamps and comes down after them. The record says too where stamps will be; where that
changes meanwhile, the Asset says so before the next stamp. Each rule looks for one of these steps; the first that
finds something to do decides, and the caller observes again. So a crash between any two steps leaves nothing but the
next step to do.

A step that can't be made for now, since its write is refused or hangs, holds up those that may only follow it:
nothing is handed over before it has ended, stamped before it is recorded, announced before it is stamped. What only
ends waiting, renews or shows goes on.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from assetlock.core.decision import Decision, subject_of, without
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

Rule: TypeAlias = Callable[[Situation], Decision | Iterator[Decision] | None]

LEISURELY_WRITES = 10
"""So many writes that only show things go out between two looks at what is urgent."""


def decide(observation: Observation) -> Decision:
    """The next writes for one asset, and when to look again if nothing happens."""
    situation = Situation(observation)
    held_up = situation.unseen is not None
    for rule in _REVOKING if observation.revocation else _RULES:
        if held_up and rule not in _ALWAYS:
            continue
        for decision in _proposals(rule, situation):
            possible = without(decision, observation.stuck, observation.namespace)
            if possible is not None:
                return possible
            held_up = True
    return Decision(wake_at=_next_deadline(situation))


def _proposals(rule: Rule, situation: Situation) -> Iterator[Decision]:
    """What a rule finds to do, the most urgent first; one that can't be done leaves the others."""
    found = rule(situation)
    if isinstance(found, Decision):
        yield found
    elif found is not None:
        yield from found


def _show(situation: Situation) -> Decision | None:
    """Bring places in the queue, expiry times and the Asset's summary up to date."""
    stuck, namespace = situation.observation.stuck, situation.observation.namespace
    possible = (w for w in refreshing.out_of_date(situation) if subject_of(w, namespace) not in stuck)
    writes = tuple(itertools.islice(possible, LEISURELY_WRITES))
    if not writes:
        return None
    return Decision(writes=writes, leisurely=True, independent=True, wake_at=_next_deadline(situation))


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
    if situation.held_up:
        held_up = [h.lock for h in situation.holders if h.lock is not None and not h.announced]
        deadlines += [queue.gives_up_at(situation.observation, lock) for lock in held_up]
    now = situation.observation.now
    return min((moment for moment in deadlines if moment is not None and moment > now), default=None)


_RULES: tuple[Rule, ...] = (
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

_ALWAYS: tuple[Rule, ...] = (granting.renew, ending.give_up, ending.forget, maintenance.keep, _show)
"""These take nothing from anybody and give nothing to anybody, whatever step is held up before them."""

_TAKING_DOWN = {stamping.clear, stamping.unstamp_strays, fencing_namespaces.take_down}
_BY_HAND = {ending.end_locks, quarantine.withhold, granting.pass_on, *_TAKING_DOWN}
_REVOKING = [rule for rule in _RULES if rule in _BY_HAND]
"""By hand, what holds the lock is ended in the same order; all else is left to the operator."""
