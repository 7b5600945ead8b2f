"""The Asset's status: who holds it, who waits, and whether its targets can be fenced."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Literal

from assetlock.core import names
from assetlock.core.acquisition import Acquisition
from assetlock.core.decision import Event, WriteAssetStatus
from assetlock.core.fence import break_glass
from assetlock.core.identity import LOCK_DELAY, QUARANTINE
from assetlock.core.locks.lease_claim import LeaseClaim
from assetlock.core.locks.lock import is_choosing
from assetlock.core.locks.queue import SHOWN
from assetlock.core.messages import printable, shortened
from assetlock.core.setter import setter_of
from assetlock.core.situation import Situation
from assetlock.core.status import fenced_places, fencing, overcommitted, reporting
from assetlock.core.stuck import Stuck
from assetlock.model.asset import Asset, AssetStatus, Holder, QueueEntry, Target
from assetlock.model.assetlock import AssetLock
from assetlock.model.conditions import Condition

MOST_DENIED_SHOWN = 5


def write(situation: Situation, status: AssetStatus, *events: Event) -> WriteAssetStatus:
    """Give the Asset this status, and tell what is new in it."""
    asset = _asset(situation)
    body = reporting.body(asset, status, situation.observation.namespace)
    return WriteAssetStatus(body, events=(*events, *overcommitted.news(asset, status)))


def status_of(situation: Situation, holders: Sequence[Holder], token: int) -> AssetStatus:
    """The Asset's status as it ought to be."""
    observation, asset = situation.observation, _asset(situation)
    waiters = [lock for lock in situation.waiters if not is_choosing(lock)]
    return AssetStatus(
        lock_state=_lock_state(holders),
        held_by=_held_by(holders),
        slots=_slots(asset, holders),
        holders=list(holders),
        queue=[_entry(lock) for lock in waiters[:SHOWN]],
        queue_length=len(waiters) + observation.behind.count,
        fencing_token=max(token, asset.status.fencing_token),
        fenced_targets=_fenced(situation) if holders else 0,
        fenced_places=fenced_places.fenced(situation) if holders else asset.status.fenced_places,
        last_patched_by=asset.status.last_patched_by,
        last_patch_time=asset.status.last_patch_time,
        broken_glass=break_glass.shown(asset.status.broken_glass, observation.now),
        conditions=_asset_conditions(situation),
        observed_generation=asset.metadata.generation,
    )


def unseen(situation: Situation, asset: Asset) -> AssetStatus:
    """What it was, while it can't be seen what the targets are; only that is said."""
    if situation.held_up is None or not situation.held_up.failed:
        return asset.status
    told = {"Ready": _held_up(situation.held_up)}
    return asset.status.model_copy(
        update={"conditions": reporting.conditions(situation.observation.now, asset, told)}
    )


def _held_up(stuck: Stuck) -> reporting.Told:
    return "False", reporting.WRITE_FAILED, stuck.why


def holder_entry(acquisition: Acquisition, token: int) -> Holder:
    """The entry in the Asset's status, which is its stamp, for whoever has these Leases."""
    held, lock, doubt = acquisition.claim, acquisition.lock, acquisition.fate.doubt
    if lock is not None:
        pod_name = lock.spec.holder.pod_name if lock.spec.holder else None
    else:
        pod_name = acquisition.primary.lease.metadata.annotations.get(names.POD_ANNOTATION)
    return Holder(
        lock=held.lock_name,
        mode=lock.spec.mode if lock else "Shared",
        identity=held.identity.username,
        pod_uid=held.identity.pod_uid,
        credential_id=held.identity.credential_id,
        pod_name=pod_name,
        slots=held.slots,
        fencing_token=token,
        acquisition=held.acquisition,
        acquire_time=_acquired_at(acquisition),
        expire_time=reporting.whole_second(held.expires) if held.expires else None,
        doubt=doubt[1] if doubt else None,
        reason=_reason(lock) if lock else _withheld_for(held),
        maintainers=(lock.spec.maintainers or None) if lock else None,
        holder_id=lock.spec.holder_id if lock else None,
    )


def _reason(lock: AssetLock) -> str | None:
    """What it is for; policies show this to whoever is refused."""
    return printable(lock.spec.reason) if lock.spec.reason else None


def _acquired_at(acquisition: Acquisition) -> datetime.datetime:
    """Once it is recorded it moves no further ahead, whatever is written into the Lease."""
    since, recorded = reporting.whole_second(acquisition.claim.since), acquisition.recorded
    return min(since, recorded.acquire_time) if recorded and recorded.acquire_time else since


def _withheld_for(held: LeaseClaim) -> str | None:
    if not held.withheld:
        return None
    if held.identity == QUARANTINE:
        return (
            f"quarantined: somebody with the verb unlock deletes AssetLock {held.lock_name}, or takes it over"
        )
    return "lockDelay after a lock that was not released"


def _lock_state(holders: Sequence[Holder]) -> Literal["Unlocked", "Locked", "Maintenance"]:
    if any(holder.mode == "Maintenance" for holder in holders):
        return "Maintenance"
    return "Locked" if holders else "Unlocked"


def _held_by(holders: Sequence[Holder]) -> str | None:
    """Who holds it, in a column."""
    if not holders:
        return None
    others = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
    return f"{shown_as(holders[0].identity)}{others}"


def shown_as(identity: str) -> str:
    """A holder's name; of what keeps everybody out, why it does."""
    nobody = {QUARANTINE.username: "nobody (quarantined)", LOCK_DELAY.username: "nobody (lockDelay)"}
    return nobody.get(identity, shortened(identity))


def _slots(asset: Asset, holders: Sequence[Holder]) -> str | None:
    """How many slots are taken, of those that there are; not of an asset with a single one."""
    taken = {slot for holder in holders for slot in holder.slots}
    return f"{len(taken)}/{asset.spec.capacity}" if asset.spec.capacity > 1 else None


def _asset(situation: Situation) -> Asset:
    if situation.observation.asset is None:
        raise ValueError(f"no asset {situation.observation.name}")
    return situation.observation.asset


def _entry(lock: AssetLock) -> QueueEntry:
    return QueueEntry(
        lock=lock.metadata.name,
        identity=reporting.username(lock),
        priority=lock.spec.priority,
        since=lock.metadata.creation_timestamp,
    )


def _asset_conditions(situation: Situation) -> list[Condition]:
    asset = _asset(situation)
    ready = _ready(situation)
    fenced = fencing.of_asset(situation)
    stalled = reporting.gone(asset, reporting.STALLED, "Ready")
    if situation.unprotected:
        ready, stalled = fenced, {reporting.STALLED: ("True", "NotFenceable", situation.unprotected)}
    if situation.held_up and situation.held_up.failed and ready[0] == "True":
        ready = _held_up(situation.held_up)
    told = {"Ready": ready, fencing.FENCED: fenced, **stalled, **_permitted(situation)}
    told |= overcommitted.condition(situation, asset)
    conditions = reporting.conditions(situation.observation.now, asset, told)
    return [c for c in conditions if c.type != "TargetsPermitted" or asset.spec.targets]


def _ready(situation: Situation) -> reporting.Told:
    quarantined = (a.claim for a in situation.holders if a.claim.withheld and a.claim.identity == QUARANTINE)
    for claim in quarantined:
        return "False", "Quarantined", _withheld_for(claim) or ""
    return "True", "Ready", "accepting locks"


def _permitted(situation: Situation) -> dict[str, reporting.Told]:
    """The condition TargetsPermitted; none while it is not known, so that what it said before stays."""
    denied, setter = situation.observation.denied, setter_of(_asset(situation).metadata.annotations)
    if denied is None or setter is None:
        return {}
    who = f"{shortened(setter.username)}, who set the targets,"
    if not denied:
        return {"TargetsPermitted": ("True", "Permitted", f"{who} may update them")}
    named = ", ".join(_what(target) for target in denied[:MOST_DENIED_SHOWN])
    more = f" and {len(denied) - MOST_DENIED_SHOWN} more" if len(denied) > MOST_DENIED_SHOWN else ""
    message = (
        f"{who} may not update {named}{more}; locks work, but somebody who may should change spec.targets"
    )
    return {"TargetsPermitted": ("False", "RightLost", message)}


def _what(target: Target) -> str:
    where = f" in namespace {target.namespace}" if target.namespace else ""
    return f"{target.kind} {target.name}{where}" if target.name else f"every {target.kind}{where}"


def _fenced(situation: Situation) -> int:
    """How many objects carry the stamp, once the lock is announced."""
    return sum(1 for t in situation.observation.targets if t.wanted and t.uid and not t.problem)
