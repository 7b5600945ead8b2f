"""The statuses that users see, built from what is observed; each is ready to be written back."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assetlock.core import glass, names, tenure
from assetlock.core.acquisition import Acquisition, Ending
from assetlock.core.decision import Body
from assetlock.core.identity import QUARANTINE
from assetlock.core.messages import shortened
from assetlock.core.queue import SHOWN
from assetlock.core.selection import described
from assetlock.core.setter import setter_of
from assetlock.core.situation import Situation
from assetlock.core.tenure import Tenure
from assetlock.model.asset import Asset, AssetStatus, Holder, QueueEntry, Target
from assetlock.model.assetlock import AssetLock, AssetLockStatus, LockState
from assetlock.model.conditions import Condition, set_condition
from assetlock.model.durations import parse_duration
from assetlock.model.times import format_time

HOLDER_ALIVE = "HolderAlive"
RECONCILING, STALLED = "Reconciling", "Stalled"
"""By these tools that know nothing of locks tell what is under way and what has failed (kstatus: Flux, kpt)."""

_BAD_ENDS = (LockState.FAILED, LockState.REVOKED, LockState.QUARANTINED)
_Told = tuple[str, str, str]

NAMED = 3
"""So many holders are named to somebody who waits, then it is said how many more there are."""

MOST_DENIED_SHOWN = 5


def asset_body(situation: Situation, holders: Sequence[Holder], token: int) -> Body:
    """The Asset with its status as it ought to be."""
    observation = situation.observation
    asset = _asset(situation)
    waiters = situation.waiters
    status = AssetStatus(
        lock_state=_lock_state(holders),
        holders=list(holders),
        queue=[_entry(lock) for lock in waiters[:SHOWN]],
        queue_length=len(waiters),
        fencing_token=max(token, asset.status.fencing_token),
        fenced_targets=_fenced(situation) if holders else 0,
        last_patched_by=asset.status.last_patched_by,
        last_patch_time=asset.status.last_patch_time,
        broken_glass=glass.shown(asset.status.broken_glass, observation.now),
        conditions=_asset_conditions(situation),
        observed_generation=asset.metadata.generation,
    )
    return _body("Asset", asset, status, observation.namespace)


def holder_entry(acquisition: Acquisition, token: int) -> Holder:
    """The entry in the Asset's status, which is its stamp, for whoever has these Leases."""
    held, lock, doubt = acquisition.tenure, acquisition.lock, acquisition.fate.doubt
    if lock is not None:
        pod_name = lock.spec.holder.pod_name if lock.spec.holder else None
    else:
        pod_name = acquisition.primary.lease.metadata.annotations.get(names.POD_ANNOTATION)
    return Holder(
        lock=held.lock_name,
        mode=lock.spec.mode if lock else "Shared",
        identity=held.identity.username,
        pod_uid=held.identity.pod_uid,
        pod_name=pod_name,
        slots=held.slots,
        fencing_token=token,
        acquisition=held.acquisition,
        acquire_time=_acquired_at(acquisition),
        expire_time=_whole_second(held.expires) if held.expires else None,
        doubt=doubt[1] if doubt else None,
        reason=lock.spec.reason if lock else _withheld_for(held),
        maintainers=(lock.spec.maintainers or None) if lock else None,
        holder_id=lock.spec.holder_id if lock else None,
    )


def _acquired_at(acquisition: Acquisition) -> datetime.datetime:
    """Once it is recorded it moves no further ahead, whatever is written into the Lease."""
    since, recorded = _whole_second(acquisition.tenure.since), acquisition.recorded
    return min(since, recorded.acquire_time) if recorded and recorded.acquire_time else since


def _withheld_for(held: Tenure) -> str | None:
    if not held.withheld:
        return None
    if held.identity == QUARANTINE:
        return (
            f"quarantined: somebody with the verb unlock deletes AssetLock {held.lock_name}, or takes it over"
        )
    return "lockDelay after a lock that was not released"


def held_body(situation: Situation, acquisition: Acquisition, lock: AssetLock, holder: Holder) -> Body:
    """The AssetLock as announced, or with its expiry brought up to date."""
    until = format_time(holder.expire_time) if holder.expire_time else "released"
    message = f"token {holder.fencing_token}, until {until}{_clipped(situation, acquisition, lock)}"
    conditions = {
        "Acquired": ("True", "Granted", message),
        "Finished": ("False", "Held", ""),
        "Settled": ("True", "Granted", message),
        **_holder_condition(acquisition, lock, until),
        **_gone(lock, RECONCILING, "Granted"),
    }
    return _lock_body(
        situation,
        lock,
        conditions,
        state=LockState.HELD,
        queue_position=None,
        waits_for=None,
        fencing_token=holder.fencing_token,
        acquire_time=holder.acquire_time,
        expire_time=holder.expire_time,
    )


def pending_body(situation: Situation, lock: AssetLock, position: int) -> Body:
    """The AssetLock in the queue, with its place and what it waits for."""
    reason, why = waiting_for(situation, lock)
    message = f"{why}; number {position} in line"
    conditions = {
        "Acquired": ("False", reason, message),
        "Finished": ("False", "Pending", ""),
        "Settled": ("False", reason, message),
        RECONCILING: ("True", reason, message),
    }
    return _lock_body(
        situation,
        lock,
        conditions,
        state=LockState.PENDING,
        queue_position=position,
        waits_for=waits_for(situation, lock, position),
    )


def waits_for(situation: Situation, lock: AssetLock, position: int) -> str | None:
    """Those who come before the lock in short: who has the asset, then who is ahead in line."""
    having = [a.tenure for a in situation.standing if a.id != lock.metadata.uid]
    ahead = situation.waiters[: min(position - 1, NAMED)]
    named = [f"{held.identity.username} ({held.lock_name or 'by hand'})" for held in having[:NAMED]]
    named += [f"{_username(waiter)} ({waiter.metadata.name})" for waiter in ahead]
    rest = len(having) + position - 1 - min(len(named), NAMED)
    return ", ".join(named[:NAMED]) + (f" and {rest} more" if rest else "") or None


def _username(lock: AssetLock) -> str:
    return lock.spec.holder.username if lock.spec.holder else "somebody"


def finished_body(situation: Situation, lock: AssetLock, ending: Ending) -> Body:
    """The AssetLock in a terminal state."""
    conditions = {
        "Acquired": ("False", ending.reason, ending.message),
        "Finished": ("True", ending.reason, ending.message),
        "Settled": ("True", ending.reason, ending.message),
    }
    conditions |= _gone(lock, RECONCILING, ending.reason)
    if ending.state in _BAD_ENDS:
        conditions[STALLED] = ("True", ending.reason, ending.message)
    if _has_condition(lock, HOLDER_ALIVE):
        conditions[HOLDER_ALIVE] = ("Unknown", ending.reason, "the lock has ended")
    finish_time = _whole_second(situation.observation.now)
    return _lock_body(
        situation,
        lock,
        conditions,
        state=ending.state,
        queue_position=None,
        waits_for=None,
        finish_time=finish_time,
    )


def waiting_for(situation: Situation, lock: AssetLock) -> tuple[str, str]:
    """Reason and sentence: why the lock can't be had now."""
    if situation.obstacle:
        return situation.obstacle
    if refusal := situation.gate.refusal(lock):
        return refusal
    present = [a for a in situation.standing if a.id != lock.metadata.uid]
    if present:
        named = [_told(acquisition) for acquisition in present[:NAMED]]
        more = f" and {len(present) - NAMED} more" if len(present) > NAMED else ""
        return _why_taken(present), f"held by {', '.join(named)}{more}"
    for observed in situation.observation.leases:
        if observed.terminating:
            finalizers = ", ".join(observed.lease.metadata.finalizers) or "none"
            return "LeaseTerminating", f"Lease {observed.name} is being deleted (finalizers: {finalizers})"
    return "Waiting", "about to be granted"


def _why_taken(present: Sequence[Acquisition]) -> str:
    """The reason, in a word, why those who have the asset do not give it up."""
    kept = {acquisition.tenure.identity for acquisition in present if acquisition.tenure.withheld}
    if not all(acquisition.tenure.withheld for acquisition in present):
        return "Locked"
    return "Quarantined" if QUARANTINE in kept else "LockDelay"


def _told(acquisition: Acquisition) -> str:
    held, doubt = acquisition.tenure, acquisition.fate.doubt
    name = held.lock_name or ("its lockDelay" if held.withheld else "a Lease made by hand")
    until = f", until {format_time(held.expires)}" if held.expires else ""
    unsure = f"; {doubt[1]}, so it keeps the lock until then" if doubt else ""
    return f"{held.identity.username} ({name}) since {format_time(held.since)}{until}{unsure}"


def _lock_state(holders: Sequence[Holder]) -> Literal["Unlocked", "Locked", "Maintenance"]:
    if any(holder.mode == "Maintenance" for holder in holders):
        return "Maintenance"
    return "Locked" if holders else "Unlocked"


def _whole_second(moment: datetime.datetime) -> datetime.datetime:
    """A time as Kubernetes shows it."""
    return moment.replace(microsecond=0)


def _asset(situation: Situation) -> Asset:
    if situation.observation.asset is None:
        raise ValueError(f"no asset {situation.observation.name}")
    return situation.observation.asset


def _clipped(situation: Situation, acquisition: Acquisition, lock: AssetLock) -> str:
    observation = situation.observation
    longest = tenure.longest_ttl(observation.asset, observation.limits, lock)
    ttl = tenure.effective_ttl(lock, observation.asset, observation.limits)
    asked = lock.spec.ttl
    if observation.asset and observation.asset.spec.max_hold and acquisition.tenure.capped:
        return f"; maxHold {observation.asset.spec.max_hold} ends it then, however often it is renewed"
    if not asked or parse_duration(asked) <= longest:
        return ""
    return f"; ttl {asked} clipped to {int(ttl.total_seconds())}s, the longest that asset and operator allow"


def _holder_condition(
    acquisition: Acquisition, lock: AssetLock, until: str
) -> dict[str, tuple[str, str, str]]:
    """Whether the holder's pod still lives: said once there has been doubt."""
    if acquisition.fate.doubt:
        reason, doubt = acquisition.fate.doubt
        message = f"{doubt}; it may still be at work, so the lock stays until it expires at {until}"
        return {HOLDER_ALIVE: ("Unknown", reason, message)}
    if _has_condition(lock, HOLDER_ALIVE):
        return {HOLDER_ALIVE: ("True", "PodReachable", "its pod can be reached again")}
    return {}


def _has_condition(original: Asset | AssetLock, kind: str) -> bool:
    return any(condition.type == kind for condition in original.status.conditions)


def _gone(original: Asset | AssetLock, kind: str, reason: str) -> dict[str, _Told]:
    """That a condition is no more, where it ever was."""
    return {kind: ("False", reason, "")} if _has_condition(original, kind) else {}


def _entry(lock: AssetLock) -> QueueEntry:
    return QueueEntry(
        lock=lock.metadata.name,
        identity=_username(lock),
        priority=lock.spec.priority,
        since=lock.metadata.creation_timestamp,
    )


def _asset_conditions(situation: Situation) -> list[Condition]:
    asset = _asset(situation)
    wanted = [target for target in situation.observation.targets if target.wanted]
    missing = next((t.target for t in wanted if not t.uid), None)
    ready = ("True", "Ready", "locks are granted")
    stalled = _gone(asset, STALLED, "Ready")
    if situation.unfenceable:
        fenced = ("False", "NotFenceable", situation.unfenceable)
        if situation.unprotected:
            ready, stalled = fenced, {STALLED: ("True", "NotFenceable", situation.unfenceable)}
    elif missing:
        fenced = _missing(missing)
    else:
        fenced = ("True", "Fenced", f"all {len(wanted)} targets can be fenced")
    told = {"Ready": ready, "Fenced": fenced, **stalled, **_permitted(situation)}
    conditions = _conditions(situation, asset, told)
    return [c for c in conditions if c.type != "TargetsPermitted" or asset.spec.targets]


def _permitted(situation: Situation) -> dict[str, tuple[str, str, str]]:
    """The condition TargetsPermitted; none while it is not known, so that what it said before stays."""
    denied, setter = situation.observation.denied, setter_of(_asset(situation).metadata.annotations)
    if denied is None or setter is None:
        return {}
    who = f"{shortened(setter.username)}, who set the targets,"
    if not denied:
        return {"TargetsPermitted": ("True", "Permitted", f"{who} may update them")}
    named = ", ".join(_what(target) for target in denied[:MOST_DENIED_SHOWN])
    more = f" and {len(denied) - MOST_DENIED_SHOWN} more" if len(denied) > MOST_DENIED_SHOWN else ""
    message = f"{who} may not update {named}{more}; locks work, but somebody who may should name them anew"
    return {"TargetsPermitted": ("False", "RightLost", message)}


def _what(target: Target) -> str:
    where = f" in namespace {target.namespace}" if target.namespace else ""
    return f"{target.kind} {target.name}{where}" if target.name else f"every {target.kind}{where}"


def _fenced(situation: Situation) -> int:
    """How many objects carry the stamp, once the lock is announced."""
    return sum(1 for t in situation.observation.targets if t.wanted and t.uid and not t.problem)


def _missing(target: Target) -> tuple[str, str, str]:
    """What the condition Fenced says of a target that is not there."""
    if target.selector is not None:
        what = f"no {target.kind} is selected by {described(target.selector)}"
        return "False", "NothingSelected", f"{what}; what will be is fenced as soon as it is"
    what = f"{target.kind} {target.name} does not exist"
    return "False", "TargetNotFound", f"{what}; it is fenced as soon as it does"


def _conditions(
    situation: Situation, original: Asset | AssetLock, wanted: Mapping[str, tuple[str, str, str]]
) -> list[Condition]:
    """The object's conditions with these, as status, reason and message by type, brought up to date."""
    conditions = list(original.status.conditions)
    for kind, (status, reason, message) in wanted.items():
        conditions = set_condition(
            conditions,
            kind,
            status,
            reason,
            message,
            now=_whole_second(situation.observation.now),
            observed_generation=original.metadata.generation,
        )
    return conditions


def _lock_body(
    situation: Situation,
    lock: AssetLock,
    conditions: Mapping[str, tuple[str, str, str]],
    **changed: Any,
) -> Body:
    """The AssetLock with these conditions and these fields of its status changed."""
    update = {
        **changed,
        "conditions": _conditions(situation, lock, conditions),
        "observed_generation": lock.metadata.generation,
    }
    return _body("AssetLock", lock, lock.status.model_copy(update=update), situation.observation.namespace)


def _body(
    kind: str, original: Asset | AssetLock, status: AssetStatus | AssetLockStatus, namespace: str
) -> Body:
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "metadata": {
            "name": original.metadata.name,
            "namespace": namespace,
            "uid": original.metadata.uid,
            "resourceVersion": original.metadata.resource_version,
        },
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
