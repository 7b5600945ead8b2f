"""The AssetLock's status: in line and behind whom, held and until when, or how it ended."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from assetlock.core.acquisition import Acquisition, Ending
from assetlock.core.decision import Body
from assetlock.core.identity import QUARANTINE
from assetlock.core.locks.lease_claim import LeaseClaim
from assetlock.core.locks.lock import acquisition_of, is_joint
from assetlock.core.locks.ttl import effective_ttl, longest_ttl
from assetlock.core.messages import shortened
from assetlock.core.selection import described
from assetlock.core.situation import Situation
from assetlock.core.status import fencing, reporting
from assetlock.core.windows import term
from assetlock.core.windows.gate import names_of
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, AssetLockStatus, LockedAsset, LockState
from assetlock.model.durations import parse_duration, shown
from assetlock.model.times import format_time

HOLDER_ALIVE = "HolderAlive"

NO_ANSWER = "NoAnswerYet"
"""Why a lock can't be had now: a write has not been answered. (`reporting.WRITE_FAILED`: it was, with a failure.)"""

NAMED = 3
"""So many holders are named to somebody who waits, then it is said how many more there are."""

_BAD_ENDS = (LockState.FAILED, LockState.REVOKED, LockState.QUARANTINED)


def body(situation: Situation, lock: AssetLock, status: AssetLockStatus) -> Body:
    """The AssetLock with this status, to be written back."""
    return reporting.body(lock, status, situation.observation.namespace)


def held(
    situation: Situation,
    acquisition: Acquisition,
    lock: AssetLock,
    holder: Holder,
    told: Sequence[LockedAsset] = (),
    together: Sequence[Situation] = (),
) -> AssetLockStatus:
    """As announced, or with its expiry brought up to date.

    ``told``: a token for each of several assets, ``together``: the situations there.
    """
    until = format_time(holder.expire_time) if holder.expire_time else "released"
    fenced = fencing.of_lock(together or (situation,))
    notes = f"{_clipped(situation, acquisition, lock)}{_unfenced(fenced)}"
    message = f"{_tokens(lock, holder, told)}, until {until}{notes}"
    conditions = {
        "Acquired": ("True", "Granted", message),
        "Finished": ("False", "Held", ""),
        "Settled": ("True", "Granted", message),
        fencing.FENCED: fenced,
        **_holder_condition(acquisition, lock, until),
        **reporting.gone(lock, reporting.RECONCILING, "Granted"),
    }
    return _changed(
        situation,
        lock,
        conditions,
        state=LockState.HELD,
        queue_position=None,
        waits_for=None,
        fencing_token=None if is_joint(lock) else holder.fencing_token,
        assets=list(told) if is_joint(lock) else None,
        tokens=", ".join(str(one.fencing_token) for one in told[:NAMED]) if is_joint(lock) else None,
        acquire_time=holder.acquire_time,
        expire_time=holder.expire_time,
    )


def fenced(situation: Situation, lock: AssetLock, told: Sequence[LockedAsset]) -> AssetLockStatus:
    """With several assets, of which these are fenced for the lock, and others are not yet."""
    return _changed(situation, lock, {}, state=LockState.PENDING, assets=list(told))


def given_back(situation: Situation, lock: AssetLock) -> AssetLockStatus:
    """With several assets, of which one can't be had after all: what it has taken is nobody's from now on."""
    attempt = (lock.status.attempt or 0) + 1
    return _changed(situation, lock, {}, state=LockState.PENDING, assets=None, attempt=attempt)


def pending(
    situation: Situation, lock: AssetLock, position: int, refusal: tuple[str, str] | None = None
) -> AssetLockStatus:
    """In the queue, with its place and what it waits for: the ``refusal``, if one is given."""
    reason, why = refusal or waiting_for(situation, lock)
    message = f"{why}; position {position} in the queue"
    conditions = {
        "Acquired": ("False", reason, message),
        "Finished": ("False", "Pending", ""),
        "Settled": ("False", reason, message),
        reporting.RECONCILING: ("True", reason, message),
    }
    return _changed(
        situation,
        lock,
        conditions,
        state=LockState.PENDING,
        queue_position=position,
        waits_for=waits_for(situation, lock, position),
    )


def finished(situation: Situation, lock: AssetLock, ending: Ending) -> AssetLockStatus:
    """In a terminal state."""
    conditions = {
        "Acquired": ("False", ending.reason, ending.message),
        "Finished": ("True", ending.reason, ending.message),
        "Settled": ("True", ending.reason, ending.message),
    }
    conditions |= reporting.gone(lock, reporting.RECONCILING, ending.reason)
    if ending.state in _BAD_ENDS:
        conditions[reporting.STALLED] = ("True", ending.reason, ending.message)
    if reporting.has_condition(lock, HOLDER_ALIVE):
        conditions[HOLDER_ALIVE] = ("Unknown", ending.reason, "the lock has ended")
    if reporting.has_condition(lock, fencing.FENCED):
        conditions[fencing.FENCED] = ("False", ending.reason, "the lock has ended")
    finish_time = reporting.whole_second(situation.observation.now)
    until = lock.status.expire_time
    return _changed(
        situation,
        lock,
        conditions,
        state=ending.state,
        queue_position=None,
        waits_for=None,
        finish_time=finish_time,
        expire_time=until if until is not None and until <= finish_time else None,
    )


def waiting_for(situation: Situation, lock: AssetLock) -> tuple[str, str]:
    """Reason and sentence: why the lock can't be had now."""
    if situation.obstacle:
        return situation.obstacle
    if refusal := situation.refusal(lock):
        return refusal
    present = [a for a in situation.active if a.id != acquisition_of(lock)]
    if present:
        named = [_told(acquisition) for acquisition in present[:NAMED]]
        more = f" and {len(present) - NAMED} more" if len(present) > NAMED else ""
        return _why_taken(present), f"held by {', '.join(named)}{more}"
    if situation.held_up:
        return reporting.WRITE_FAILED if situation.held_up.failed else NO_ANSWER, situation.held_up.why
    for observed in situation.observation.leases:
        if observed.terminating:
            finalizers = ", ".join(observed.lease.metadata.finalizers) or "none"
            return "LeaseTerminating", f"Lease {observed.name} is being deleted (finalizers: {finalizers})"
    ahead = next(iter(situation.waiters), lock)
    if ahead.metadata.uid != lock.metadata.uid:
        return "Locked", f"{reporting.username(ahead)} ({ahead.metadata.name}) comes first"
    return "Waiting", "about to be granted"


def waits_for(situation: Situation, lock: AssetLock, position: int) -> str | None:
    """Those who come before the lock in short: who has the asset, then who is ahead in line."""
    having = [a.claim for a in situation.active if a.id != acquisition_of(lock)]
    ahead = situation.waiters[: min(position - 1, NAMED)]
    named = [f"{held.identity.username} ({held.lock_name or _by_what(held)})" for held in having[:NAMED]]
    named += [f"{reporting.username(waiter)} ({waiter.metadata.name})" for waiter in ahead]
    rest = len(having) + position - 1 - min(len(named), NAMED)
    return ", ".join(named[:NAMED]) + (f" and {rest} more" if rest else "") or None


def _by_what(held: LeaseClaim) -> str:
    """What has an asset that no AssetLock has."""
    return "lockDelay" if held.withheld else "Lease"


def _asset_list(lock: AssetLock, chosen: Sequence[LockedAsset] | None) -> str:
    """The assets of a lock over several, in a column."""
    selector = lock.spec.asset_selector
    if selector is not None and not chosen:
        return f"{lock.spec.count or 1} of {shortened(described(selector))}"
    names = (
        sorted(one.name for one in chosen or ())
        if selector is not None
        else sorted(lock.spec.asset_names or ())
    )
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _unfenced(fenced: reporting.Told) -> str:
    """What a lock does not protect, for who reads that it was acquired."""
    status, reason, message = fenced
    if status == "True" or reason == "NoTargets":
        return ""
    return f"; it does not protect everything: {message}"


def _tokens(lock: AssetLock, holder: Holder, told: Sequence[LockedAsset]) -> str:
    if not is_joint(lock):
        return f"token {holder.fencing_token}"
    return f"tokens {', '.join(f'{one.fencing_token} on {one.name}' for one in told)}"


def _why_taken(present: Sequence[Acquisition]) -> str:
    """The reason, in a word, why those who have the asset do not give it up."""
    kept = {acquisition.claim.identity for acquisition in present if acquisition.claim.withheld}
    if not all(acquisition.claim.withheld for acquisition in present):
        return "Locked"
    return "Quarantined" if QUARANTINE in kept else "LockDelay"


def _told(acquisition: Acquisition) -> str:
    held, doubt = acquisition.claim, acquisition.fate.doubt
    name = held.lock_name or ("its lockDelay" if held.withheld else "a Lease")
    until = f", until {format_time(held.expires)}" if held.expires else ""
    unsure = f"; {doubt[1]}, so it keeps the lock until then" if doubt else ""
    return f"{held.identity.username} ({name}) since {format_time(held.since)}{until}{unsure}"


def _clipped(situation: Situation, acquisition: Acquisition, lock: AssetLock) -> str:
    observation = situation.observation
    longest = longest_ttl(observation.asset, observation.limits, lock)
    ttl = effective_ttl(lock, observation.asset, observation.limits)
    asked = lock.spec.ttl
    if cut := _cut_short(situation, acquisition, ttl):
        return cut
    if observation.asset and observation.asset.spec.max_hold and acquisition.claim.capped:
        return f"; maxHold {observation.asset.spec.max_hold} ends it then, however often it is renewed"
    if not asked or parse_duration(asked) <= longest:
        return ""
    return f"; ttl {asked} clipped to {shown(ttl)}, the longest that asset and operator allow"


def _cut_short(situation: Situation, acquisition: Acquisition, ttl: datetime.timedelta) -> str:
    """That a maintenance window ends it before its TTL does; empty while none does."""
    gate, claim = situation.gate, acquisition.claim
    if (claim.term.lease.spec.lease_duration_seconds or 0) >= int(ttl.total_seconds()):
        return ""
    closure = gate.closure or gate.closings.next_closure(situation.observation.now)
    if closure is None or closure.since is None or claim.term_ends > closure.since + term.TOLERANCE:
        return ""
    return f"; ttl {shown(ttl)} is cut short: {names_of(closure)} begins maintenance at {format_time(closure.since)}"


def _holder_condition(acquisition: Acquisition, lock: AssetLock, until: str) -> dict[str, reporting.Told]:
    """Whether the holder's pod still lives: said once there has been doubt."""
    if acquisition.fate.doubt:
        reason, doubt = acquisition.fate.doubt
        message = f"{doubt}; it may still be at work, so the lock stays until it expires at {until}"
        return {HOLDER_ALIVE: ("Unknown", reason, message)}
    if reporting.has_condition(lock, HOLDER_ALIVE):
        return {HOLDER_ALIVE: ("True", "PodReachable", "its pod can be reached again")}
    return {}


def _changed(
    situation: Situation,
    lock: AssetLock,
    conditions: Mapping[str, reporting.Told],
    **changed: Any,
) -> AssetLockStatus:
    """The AssetLock's status with these conditions and these fields of it changed."""
    update = {
        **changed,
        **(
            {"asset_list": _asset_list(lock, changed.get("assets", lock.status.assets))}
            if is_joint(lock)
            else {}
        ),
        "conditions": reporting.conditions(situation.observation.now, lock, conditions),
        "observed_generation": lock.metadata.generation,
    }
    return lock.status.model_copy(update=update)
