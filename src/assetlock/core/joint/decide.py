"""The decision about a lock over several assets: when all can be had it takes them, in order, or it waits for all.

Beyond that each asset is decided about by itself: it is recorded, stamped and told to the lock there. A lock takes
nothing before it is next in line on each of its assets and all are free; as every line has the same order, no two
such locks wait for each other. If somebody was faster all the same, what it took is given back: it never waits with a
part of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
from collections.abc import Mapping

from assetlock.core.decision import (
    ConfirmAsset,
    Confirmation,
    ConfirmPod,
    CreateLease,
    Decision,
    DeleteLock,
    ReplaceLease,
    WriteLockStatus,
)
from assetlock.core.joint import choosing
from assetlock.core.joint.choosing import Refusal
from assetlock.core.joint.progress import Progress, Stage, progress_of
from assetlock.core.locks import queue
from assetlock.core.locks.lock import CLOSED, is_choosing, lock_uid
from assetlock.core.observation import Observation
from assetlock.core.pods import Fate
from assetlock.core.rules import ending, lease_bodies
from assetlock.core.rules.granting import confirm_alive
from assetlock.core.rules.live_reads import confirm_ended, confirm_slots
from assetlock.core.rules.maintenance import next_deadline
from assetlock.core.situation import Situation
from assetlock.core.status import assetlock as lock_status
from assetlock.core.status.asset import holder_entry
from assetlock.core.windows import term
from assetlock.model.assetlock import AssetLock, AssetLockStatus, LockedAsset, LockState
from assetlock.model.conditions import reason_of

MOST_CONFIRMED = 3
"""So many of the assets that are in the way are looked at anew before a lock is turned away."""

_NEVER = datetime.datetime.max.replace(tzinfo=datetime.UTC)


@dataclasses.dataclass(frozen=True)
class JointView:
    """A lock over several assets, and what is observed of each of them, in the order in which they are taken.

    While it has not chosen its assets yet, these are all that it selects. ``namespace`` is theirs.
    """

    now: datetime.datetime
    namespace: str
    lock: AssetLock
    observations: tuple[Observation, ...]
    pods: Mapping[str, Fate] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def anywhere(self) -> Situation:
        """What holds whichever asset it is about."""
        nowhere = Observation(self.now, self.namespace, "", locks=(self.lock,), pods=self.pods)
        seen = self.observations[0].locks_seen if self.observations else {}
        return Situation(dataclasses.replace(nowhere, locks_seen=seen))

    @functools.cached_property
    def situations(self) -> tuple[Situation, ...]:
        """What the observations mean."""
        return tuple(map(Situation, self.observations))

    @functools.cached_property
    def progress(self) -> tuple[Progress, ...]:
        """How far the lock has come on each of its assets."""
        return tuple(progress_of(situation, self.lock) for situation in self.situations)

    @functools.cached_property
    def lasts(self) -> datetime.timedelta:
        """How long a term is that begins now: the shortest that any of the assets allows."""
        return min(term.length(observation, self.lock) for observation in self.observations)


def decide_together(view: JointView) -> Decision:
    """The next writes for the lock, and when to look again if nothing happens."""
    lock = view.lock
    if queue.has_ended(lock):
        return _forget(view)
    if lock.status.state is LockState.HELD:
        return _renew(view) or _show_held(view) or Decision(wake_at=_renewal_ahead(view))
    withdrawn = ending.not_to_be_served(lock) or view.anywhere.given_up_by_pod(lock)
    if withdrawn is not None:
        confirm = (ConfirmPod(withdrawn.pod, ended=True),) if withdrawn.pod else ()
        return Decision(confirm=confirm, writes=(ending.finish(view.anywhere, lock, withdrawn),))
    if is_choosing(lock):
        return _choose(view)
    blocked = [each for each in view.progress if each.stage is Stage.BLOCKED]
    if blocked:
        refusal = _refusal(blocked)
        return (
            _fail(view, refusal, blocked)
            or _give_back(view, blocked)
            or _show_pending(view, refusal, blocked)
        )
    if any(each.stage is Stage.CLEARING for each in view.progress):
        return Decision()
    if held_up := _held_up(view):
        return _fail(view, held_up, []) or _show_pending(view, held_up, [])
    ready = [each for each in view.progress if each.stage is Stage.READY]
    return _take(view, ready) if ready else Decision()


def _held_up(view: JointView) -> Refusal | None:
    """Why the lock can't go on although nobody has what it needs: a write is refused, fails or hangs."""
    situations = [each.situation for each in view.progress if each.situation.held_up]
    return lock_status.waiting_for(situations[0], view.lock) if situations else None


def _choose(view: JointView) -> Decision:
    """Write down which assets it is to be, if there are enough that could be taken now."""
    lock = view.lock
    chosen = choosing.choice(lock, view.progress)
    if chosen is not None:
        status = lock_status.fenced(view.anywhere, lock, [LockedAsset(name=name) for name in chosen])
        return Decision(confirm=confirm_alive(lock), writes=(_write(view, status),))
    if choosing.may_soon(lock, view.progress):
        return Decision()
    blocked = [each for each in view.progress if each.stage is Stage.BLOCKED]
    refusal = choosing.refusal(lock, view.progress)
    return _fail(view, refusal, blocked) or _show_pending(view, refusal, blocked)


def _take(view: JointView, ready: list[Progress]) -> Decision:
    """Claim what the lock does not have yet; what can't be had after all ends the list of writes."""
    writes: list[CreateLease | ReplaceLease] = []
    confirm: list[Confirmation] = [*confirm_alive(view.lock)]
    for each in ready:
        situation = each.situation
        left = [observed for slot in each.slots if (observed := situation.vacant[slot])]
        confirm += confirm_ended(situation, left)
        for slot in each.slots:
            body = lease_bodies.claimed(situation.observation, slot, view.lock, lasts=view.lasts)
            writes.append(ReplaceLease(body) if situation.vacant[slot] else CreateLease(body))
    return Decision(confirm=tuple(confirm), writes=tuple(writes))


def _fail(view: JointView, refusal: Refusal, blocked: list[Progress]) -> Decision | None:
    """A lock that does not wait, or has waited long enough, is not had."""
    if not ending.has_no_time_left(view.anywhere.observation, view.lock):
        return None
    failed = ending.not_had(view.lock, *refusal)
    confirm = tuple(itertools.chain.from_iterable(map(_confirm_blocked, blocked[:MOST_CONFIRMED])))
    return Decision(confirm=confirm, writes=(ending.finish(view.anywhere, view.lock, failed),))


def _give_back(view: JointView, blocked: list[Progress]) -> Decision | None:
    """Whatever the lock has taken in vain is nobody's from this write on."""
    if not any(each.own for each in view.progress) and view.lock.spec.asset_selector is None:
        return None
    status = lock_status.given_back(view.anywhere, view.lock)
    return Decision(confirm=_confirm_blocked(blocked[0]), writes=(_write(view, status),))


def _confirm_blocked(each: Progress) -> tuple[Confirmation, ...]:
    """Nobody is turned away for what is not so any more."""
    observation = each.situation.observation
    if observation.asset is None:
        return (ConfirmAsset(None, observation.name),)
    free = [slot for slot in range(observation.capacity) if slot not in each.situation.stuck_slots]
    return confirm_slots(each.situation, free)


def _show_pending(view: JointView, refusal: Refusal, blocked: list[Progress]) -> Decision:
    lock = view.lock
    situations = [each.situation for each in blocked] or [view.anywhere]
    situation = (min if is_choosing(lock) else max)(situations, key=lambda one: _place(one, lock))
    position = _place(situation, lock)
    status = lock_status.pending(situation, lock, position, refusal)
    wake_at = _earliest(
        queue.gives_up_at(view.anywhere.observation, lock), *map(next_deadline, view.situations)
    )
    if _is_about_right(lock, status):
        return Decision(wake_at=wake_at)
    return Decision(writes=(_write(view, status),), leisurely=lock.status.state is not None, wake_at=wake_at)


def _is_about_right(lock: AssetLock, wanted: AssetLockStatus) -> bool:
    """Whether the lock shows its place, who is ahead, and why it waits; its exact words may be of before."""
    return _gist(lock.status) == _gist(wanted)


def _gist(status: AssetLockStatus) -> tuple[object, ...]:
    return (status.queue_position, status.waits_for, reason_of(status.conditions, "Settled"))


def _place(situation: Situation, lock: AssetLock) -> int:
    """Which in line it is on an asset, as far as it still needs that."""
    return situation.place_of(lock) or 1


def _refusal(blocked: list[Progress]) -> Refusal:
    """Reason and message for all: an asset that is closed is named before those that somebody has."""
    refusals = [each.refusal for each in blocked]
    reason, message = next((each for each in refusals if each[0] in CLOSED), refusals[0])
    others = len(blocked) - 1
    more = f"; {others} more of its assets can't be acquired either" if others else ""
    return reason, message + more


def _renew(view: JointView) -> Decision | None:
    """A changed ``ttl``, policy or maintenance window starts a new term, on the first asset for all of them."""
    first = view.progress[0].own
    if first is None or term.are_right(view.observations, view.lock, first.claim):
        return None
    body = lease_bodies.renewed(view.observations[0], first, view.lock, view.lasts)
    return Decision(writes=(ReplaceLease(body),))


def _renewal_ahead(view: JointView) -> datetime.datetime | None:
    """When a renewal counts whose time, by admission's clock, has not come by ours."""
    renewed = view.lock.spec.renew_time
    return renewed if renewed is not None and renewed > view.now else None


def _show_held(view: JointView) -> Decision | None:
    """Until when it is held is for the asset to say where that is over first."""
    lock = view.lock
    held = [(s.situation, s.own, s.own.recorded) for s in view.progress if s.own and s.own.recorded]
    if len(held) < len(view.progress):
        return None
    told = [LockedAsset(name=s.observation.name, fencing_token=r.fencing_token) for s, _, r in held]
    situation, own, recorded = min(held, key=lambda one: one[1].claim.expires or _NEVER)
    entry = holder_entry(own, recorded.fencing_token)
    entry = entry.model_copy(update={"acquire_time": lock.status.acquire_time})
    situations = [situation for situation, _, _ in held]
    status = lock_status.held(situation, own, lock, entry, told, situations)
    return None if status == lock.status else Decision(writes=(_write(view, status),), leisurely=True)


def _forget(view: JointView) -> Decision:
    """Delete it when its time to be shown is over, and none of its assets needs it any more."""
    moment, meta = queue.forget_at(view.lock), view.lock.metadata
    if (
        moment is None
        or meta.deletion_timestamp is not None
        or any(_has_left(s, view.lock) for s in view.situations)
    ):
        return Decision()
    if moment > view.now:
        return Decision(wake_at=moment)
    return Decision(writes=(DeleteLock(meta.name, meta.uid, meta.resource_version),))


def _has_left(situation: Situation, lock: AssetLock) -> bool:
    """Whether anything of it, or kept after it, is still on an asset."""
    return any(
        a.claim.lock_name is not None and lock_uid(a.id) == lock.metadata.uid for a in situation.acquisitions
    )


def _write(view: JointView, status: AssetLockStatus) -> WriteLockStatus:
    return WriteLockStatus(lock_status.body(view.anywhere, view.lock, status))


def _earliest(*moments: datetime.datetime | None) -> datetime.datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
