"""One acquisition as it stands: what its Leases, its AssetLock and the Asset's status say of it together."""

from __future__ import annotations

import dataclasses
import datetime

from assetlock.core import names, pods
from assetlock.core.fence.stamp import LONGEST_TOKEN
from assetlock.core.identity import QUARANTINE
from assetlock.core.locks import queue
from assetlock.core.locks.lease_claim import LeaseClaim, acquisition_id, lock_of
from assetlock.core.locks.lock import has_all, is_given_back, lock_uid, token_told
from assetlock.core.messages import shortened
from assetlock.core.observation import Observation, ObservedLease
from assetlock.core.pods import Fate, PodRef
from assetlock.core.windows import window_locks
from assetlock.core.windows.gate import Gate
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.times import format_time

HOLDER_FAILED = "HolderFailed"
"""Why a lock ended: its pod has failed, and who knows what it left behind."""

_UNKNOWN = Fate()
_SECOND = datetime.timedelta(seconds=1)
_HINT = (
    'nobody gets it until somebody with the verb "unlock" deletes this AssetLock, or another takes it over'
)


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """How an acquisition ended.

    ``confirmed`` is false where only the absence of its AssetLock says so; ``pod`` is the one whose end says so.
    """

    state: LockState
    reason: str
    message: str
    confirmed: bool = True
    pod: PodRef | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Acquisition:
    """Somebody has Leases of the asset: to hold it, to collect all that an Exclusive lock needs, or in vain.

    ``lock`` is its AssetLock, if it is known. ``recorded`` is what the Asset's status says about it, once its token
    is fixed. ``ending`` is why it is over; ``None`` while it stands. ``fate`` is what is known of the pod behind it.
    ``told`` is the token that its AssetLock tells, be it ``Held`` or not yet on all of its assets.
    """

    claim: LeaseClaim
    lock: AssetLock | None
    recorded: Holder | None
    ending: Ending | None
    fate: Fate
    told: int | None = None

    @property
    def id(self) -> str:
        """Tells it from every other acquisition."""
        return self.claim.acquisition

    @property
    def by_hand(self) -> bool:
        """Whether it is a Lease that somebody made without an AssetLock."""
        return self.claim.lock_name is None and not self.claim.withheld

    @property
    def exclusive(self) -> bool:
        """Whether it needs the whole asset."""
        return self.lock is not None and needs_all(self.lock)

    @property
    def primary(self) -> ObservedLease:
        """The Lease of its first slot."""
        return self.claim.leases[0]

    @property
    def token_announced(self) -> int | None:
        """The token that the holder has been told; ``None`` before that, so while a part of its assets is fenced."""
        if self.lock is not None:
            return self.told if self.lock.status.state is LockState.HELD else None
        told = self.primary.lease.metadata.annotations.get(names.TOKEN_ANNOTATION, "")
        return int(told) if told.isdecimal() and len(told) <= LONGEST_TOKEN else None

    @property
    def announced(self) -> bool:
        """Whether the holder has been told the token that is recorded."""
        if self.recorded is None:
            return False
        if self.lock is not None:
            return self.lock.status.state is LockState.HELD or self.told == self.recorded.fencing_token
        return self.token_announced == self.recorded.fencing_token


def _revoked(observation: Observation, lock: AssetLock | None) -> Ending | None:
    """A lock for maintenance with ``whenHeld: Revoke`` is next, and waits for nobody."""
    asset = observation.asset
    if asset is None or asset.metadata.deletion_timestamp is not None:
        return None
    for other in observation.locks:
        if window_locks.revokes(other, lock) and not queue.ran_out(observation, other):
            who = other.spec.holder.username if other.spec.holder else ""
            why = f" ({shortened(other.spec.reason)})" if other.spec.reason else ""
            message = f"the asset is under maintenance by {who}, lock {other.metadata.name}{why}"
            return Ending(LockState.REVOKED, "Maintenance", message)
    return None


def needs_all(lock: AssetLock) -> bool:
    """Whether a lock takes all slots of its asset, and not just one."""
    return lock.spec.mode != "Shared"


def lacks_slots(lock: AssetLock, claim: LeaseClaim, capacity: int) -> bool:
    """Whether the lock does not have all the slots that it needs."""
    return needs_all(lock) and not set(range(capacity)) <= set(claim.slots)


def is_complete(observation: Observation, lock: AssetLock, claim: LeaseClaim) -> bool:
    """Whether the lock has all that it needs, here and on its other assets."""
    all_here = not lacks_slots(lock, claim, observation.capacity)
    return all_here and has_all(lock, observation.name, claim.elsewhere)


def acquired(
    observation: Observation, claim: LeaseClaim, gate: Gate, *, unfenceable: str | None
) -> Acquisition:
    """What a tenure comes to. ``unfenceable``: why a target can't be fenced."""
    asset = observation.asset
    lock = None
    if claim.lock_name is not None:
        lock = lock_of(observation, claim.acquisition)
    holders = asset.status.holders if asset else []
    recorded = next((holder for holder in holders if holder.acquisition == claim.acquisition), None)
    pod = pods.holds_for(lock) if lock else pods.pod_of_lease(claim.leases[0].lease)
    ending = (
        (_end_of_withholding(observation, claim) if claim.withheld else _ending(observation, claim, lock))
        or _loss(observation, claim, lock, recorded, gate)
        or _failing(observation, lock, pod, unfenceable)
        or (None if unfenceable else _revoked(observation, lock))
        or _handed_over(observation, claim, gate, unfenceable)
    )
    told = token_told(lock, observation.name) if lock else None
    return Acquisition(claim, lock, recorded, ending, fate_of(observation, pod), told)


def _ending(observation: Observation, claim: LeaseClaim, lock: AssetLock | None) -> Ending | None:
    if lock is None and any(is_given_back(claim.acquisition, other) for other in observation.locks):
        return Ending(LockState.RELEASED, "GivenBack", "another of the lock's assets could not be acquired")
    if claim.lock_name is not None and lock is None:
        return Ending(LockState.RELEASED, "Deleted", "its AssetLock was deleted", confirmed=False)
    if lock is not None and lock.status.state is not None and queue.has_ended(lock):
        return Ending(lock.status.state, "Finished", "its AssetLock has finished")
    if lock is not None and lock.metadata.deletion_timestamp is not None:
        return Ending(LockState.RELEASED, "Deleted", "the AssetLock is being deleted")
    return None


def _end_of_withholding(observation: Observation, claim: LeaseClaim) -> Ending | None:
    """A quarantine is over when its AssetLock is deleted. Without an Asset there is nothing to keep from anybody."""
    uid = lock_uid(claim.acquisition)
    quarantined = claim.identity == QUARANTINE
    lock = next((k for k in observation.locks if k.metadata.uid == uid), None)
    if quarantined and (lock is None or lock.metadata.deletion_timestamp is not None):
        return Ending(LockState.RELEASED, "Deleted", "its AssetLock was deleted", confirmed=False)
    if observation.asset is None:
        return Ending(LockState.REVOKED, "AssetDeleted", f"asset {observation.name} no longer exists")
    return None


def _loss(
    observation: Observation,
    claim: LeaseClaim,
    lock: AssetLock | None,
    recorded: Holder | None,
    gate: Gate,
) -> Ending | None:
    if any(observed.terminating for observed in claim.leases):
        state, reason = (LockState.RELEASED, "Deleted") if lock is None else (LockState.REVOKED, "LeaseLost")
        return Ending(state, reason, "its Lease was deleted")
    revoker = _revoker(observation, claim)
    if revoker is not None:
        return Ending(LockState.REVOKED, "Revoked", f"revoked by {revoker}")
    if recorded is not None and lock is not None and not set(recorded.slots) <= set(claim.slots):
        return Ending(LockState.REVOKED, "LeaseLost", "one of its Leases was deleted or taken over")
    collecting = lock is not None and recorded is None and not is_complete(observation, lock, claim)
    if claim.expires is None or claim.deadline is None or claim.deadline > observation.now or collecting:
        return None
    if _is_renewed(observation, claim) and gate.closure is None:
        return None
    message = f"not renewed by {format_time(claim.expires)}"
    if claim.capped and observation.asset is not None:
        longest = observation.asset.spec.max_hold
        message = f"held for maxHold, {longest}, which ended it at {format_time(claim.expires)}"
    if not _is_to_be_looked_at(lock):
        return Ending(LockState.EXPIRED, "Expired", message)
    return Ending(LockState.QUARANTINED, "Quarantined", f"{message}; {_HINT}")


def _is_renewed(observation: Observation, claim: LeaseClaim) -> bool:
    """Whether the holder has renewed it in time, though the Lease does not say so yet."""
    if claim.renewed is None or claim.capped:
        return False
    lasts = (claim.term.lease.spec.lease_duration_seconds or 0) * _SECOND
    return claim.renewed + lasts + observation.limits.skew > observation.now


def _is_to_be_looked_at(lock: AssetLock | None) -> bool:
    """Whether the asset stays closed after this lock if it is not released."""
    if lock is None or lock.status.state is not LockState.HELD:
        return False
    return lock.spec.on_expiry == "Quarantine"


def _revoker(observation: Observation, claim: LeaseClaim) -> str | None:
    """Who ends it by hand, without an operator or by what is written on one of its Leases."""
    revocation = observation.revocation
    if revocation is not None and claim.acquisition in revocation.acquisitions:
        return revocation.by
    told = (observed.lease.metadata.annotations.get(names.REVOKED_ANNOTATION) for observed in claim.leases)
    return next((who for who in told if who is not None), None)


def taken_by(claim: LeaseClaim, lock: AssetLock) -> bool:
    """Whether the lock is to take over from this acquisition, named by its AssetLock, or its Lease if it has none."""
    named = [claim.lock_name] if claim.lock_name else [observed.name for observed in claim.leases]
    return lock.spec.take_over is not None and lock.spec.take_over in named


def taker_of(observation: Observation, claim: LeaseClaim) -> AssetLock | None:
    """The AssetLock that is to take over from this acquisition, if there is one."""
    takers = (lock for lock in observation.locks if taken_by(claim, lock))
    ready = (lock for lock in takers if queue.may_be_granted(observation, lock))
    return min((k for k in ready if k.metadata.uid != claim.acquisition), key=queue.rank, default=None)


def _handed_over(
    observation: Observation, claim: LeaseClaim, gate: Gate, unfenceable: str | None
) -> Ending | None:
    """Who is to take over ends the acquisition, but not before nobody else, nor a window, is in the way."""
    taker, asset = taker_of(observation, claim), observation.asset
    if taker is None or taker.spec.holder is None or asset is None or unfenceable:
        return None
    if asset.metadata.deletion_timestamp is not None or gate.refusal(taker):
        return None
    own = {claim.acquisition, taker.metadata.uid}
    others = [
        observed
        for observed in observation.leases
        if observed.lease.spec.holder_identity and acquisition_id(observed) not in own
    ]
    if needs_all(taker) and others:
        return None
    message = f"handed over to {taker.spec.holder.username} ({taker.metadata.name})"
    return Ending(LockState.RELEASED, "HandedOver", message)


def _failing(
    observation: Observation, lock: AssetLock | None, pod: PodRef | None, unfenceable: str | None
) -> Ending | None:
    gone = end_with_pod(observation, pod, waiting=lock is not None and queue.is_pending(lock))
    if gone is not None and gone.reason == HOLDER_FAILED and _is_to_be_looked_at(lock):
        return dataclasses.replace(gone, state=LockState.QUARANTINED, message=f"{gone.message}; {_HINT}")
    if gone is not None or lock is None:
        return gone
    if observation.asset is None:
        return Ending(LockState.REVOKED, "AssetDeleted", f"asset {observation.name} no longer exists")
    if queue.is_pending(lock) and unfenceable:
        return Ending(LockState.FAILED, "NotFenceable", unfenceable)
    return None


def end_with_pod(observation: Observation, pod: PodRef | None, *, waiting: bool) -> Ending | None:
    """How an acquisition, or a lock that waits for one, ends with its pod, once that has ended."""
    fate = fate_of(observation, pod)
    if fate.ended is None:
        return None
    if not waiting:
        reason = HOLDER_FAILED if fate.failed else "HolderGone"
        return Ending(LockState.RELEASED, reason, fate.ended, pod=pod)
    message = f"{fate.ended}; to queue for others to go on with it, set spec.releaseWithHolder to false"
    return Ending(LockState.FAILED, "HolderGone", message, pod=pod)


def fate_of(observation: Observation, pod: PodRef | None) -> Fate:
    """What is known of a pod."""
    return observation.pods.get(pod.uid, _UNKNOWN) if pod else _UNKNOWN
