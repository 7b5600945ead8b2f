"""What an observation means: who holds the lock, whether that has ended, who waits, what stands in the way."""

from __future__ import annotations

import dataclasses
import functools

from assetlock.core import guard, names, pods, queue, tenure
from assetlock.core.guard import Guard
from assetlock.core.identity import Identity
from assetlock.core.observation import Observation, ObservedNamespace, ObservedTarget
from assetlock.core.pods import Fate, PodRef
from assetlock.core.stamp import Stamp, stamp_of
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.times import format_time

_UNKNOWN = Fate()


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


class Situation:
    """An observation, read. Nothing here is stored anywhere: it is derived anew for each decision."""

    def __init__(self, observation: Observation) -> None:
        self.observation = observation
        self.tenure = tenure.tenure_of(observation)

    @functools.cached_property
    def stamp_key(self) -> str:
        """The annotation that this asset's stamps stand in."""
        return names.stamp_key(self.observation.name, self.observation.namespace)

    @functools.cached_property
    def lock(self) -> AssetLock | None:
        """The AssetLock that has the Lease."""
        if self.tenure is None:
            return None
        return next((k for k in self.observation.locks if k.metadata.uid == self.tenure.acquisition), None)

    @functools.cached_property
    def ending(self) -> Ending | None:
        """Why the acquisition that the Lease records has ended; ``None`` while it stands, or without one."""
        held, observation = self.tenure, self.observation
        if held is None:
            return None
        lock = self.lock
        if held.lock_name is not None and lock is None:
            return Ending(LockState.RELEASED, "Deleted", "its AssetLock was deleted", confirmed=False)
        if lock is not None and lock.status.state is not None and queue.has_ended(lock):
            return Ending(lock.status.state, "Finished", "its AssetLock has finished")
        if lock is not None and lock.metadata.deletion_timestamp is not None:
            return Ending(LockState.RELEASED, "Deleted", "the AssetLock is being deleted")
        if observation.lease is not None and observation.lease.metadata.deletion_timestamp is not None:
            state, reason = (
                (LockState.RELEASED, "Deleted") if lock is None else (LockState.REVOKED, "LeaseLost")
            )
            return Ending(state, reason, "its Lease was deleted")
        if held.deadline <= observation.now:
            until = format_time(held.expires)
            return Ending(LockState.EXPIRED, "Expired", f"not renewed by {until}")
        gone = self._gone(self.pod, waiting=lock is not None and queue.is_pending(lock))
        if gone is not None:
            return gone
        if lock is not None and observation.asset is None:
            return Ending(LockState.REVOKED, "AssetDeleted", f"asset {observation.name} no longer exists")
        if lock is not None and queue.is_pending(lock) and self.unfenceable:
            return Ending(LockState.FAILED, "NotFenceable", self.unfenceable)
        return None

    @functools.cached_property
    def pod(self) -> PodRef | None:
        """The pod whose end ends the acquisition that the Lease records."""
        if self.lock is not None:
            return pods.holds_for(self.lock)
        return pods.pod_of_lease(self.observation.lease) if self.observation.lease else None

    @functools.cached_property
    def fate(self) -> Fate:
        """What is known of that pod."""
        return self._fate_of(self.pod)

    @functools.cached_property
    def holding(self) -> bool:
        """Whether somebody holds the lock now."""
        return self.tenure is not None and self.ending is None

    @functools.cached_property
    def waiters(self) -> list[AssetLock]:
        """Those in line behind whoever has the Lease."""
        line = queue.in_line(self.observation, besides=self.tenure.acquisition if self.tenure else None)
        return [lock for lock in line if self.given_up_by_pod(lock) is None]

    def given_up_by_pod(self, lock: AssetLock) -> Ending | None:
        """How a lock that waits ends with the pod that it is for, once that has ended."""
        return self._gone(pods.holds_for(lock), waiting=True)

    @functools.cached_property
    def unfenceable(self) -> str | None:
        """Why one of the targets can't be fenced, ready to be read; ``None`` when all can."""
        wanted = [target for target in self.observation.targets if target.wanted]
        places = {target.namespace for target in wanted if target.uid}
        problems = (
            *(target.problem for target in wanted),
            *map(guard.unguardable, wanted),
            *(space.problem for space in self.observation.namespaces if space.name in places),
        )
        return next(filter(None, problems), None)

    @functools.cached_property
    def obstacle(self) -> tuple[str, str] | None:
        """Reason and message when nobody may be granted the lock, whoever asks."""
        observation = self.observation
        if observation.asset is None or observation.asset.metadata.deletion_timestamp is not None:
            return "AssetNotFound", f"no asset {observation.name!r} in namespace {observation.namespace!r}"
        if self.unfenceable:
            return "NotFenceable", self.unfenceable
        lease = observation.lease
        if lease is not None and lease.metadata.deletion_timestamp is not None:
            finalizers = ", ".join(lease.metadata.finalizers) or "none"
            return (
                "LeaseTerminating",
                f"Lease {lease.metadata.name} is being deleted (finalizers: {finalizers})",
            )
        return None

    @functools.cached_property
    def recorded(self) -> Holder | None:
        """What the Asset's status says about the present acquisition, once its token is fixed."""
        asset = self.observation.asset
        if asset is None or self.tenure is None:
            return None
        return next((h for h in asset.status.holders if h.acquisition == self.tenure.acquisition), None)

    @functools.cached_property
    def token_announced(self) -> int | None:
        """The token that the holder has been told; ``None`` before that."""
        lock, lease = self.lock, self.observation.lease
        if lock is not None:
            return lock.status.fencing_token if lock.status.state is LockState.HELD else None
        told = lease.metadata.annotations.get(names.TOKEN_ANNOTATION, "") if lease else ""
        return int(told) if told.isdecimal() else None

    @functools.cached_property
    def announced(self) -> bool:
        """Whether the holder has been told its token."""
        recorded, lease = self.recorded, self.observation.lease
        if recorded is None or lease is None:
            return False
        if self.lock is not None:
            return self.lock.status.state is LockState.HELD
        return self.token_announced == recorded.fencing_token

    @functools.cached_property
    def token_in_use(self) -> int:
        """The highest token that the Asset, its targets, their namespaces or its Lease have seen."""
        asset = self.observation.asset
        return max(
            asset.status.fencing_token if asset else 0,
            self.token_announced or 0,
            *(stamp.token for stamp in map(self.stamp, self.observation.targets) if stamp),
            *(found.token for found in map(self.guard, self.observation.namespaces) if found),
            *(k.status.fencing_token or 0 for k in self.observation.locks),
            0,
        )

    @functools.cached_property
    def guard_key(self) -> str:
        """The annotation that this asset's guards stand in."""
        return names.guard_key(self.observation.name, self.observation.namespace)

    def guard(self, namespace: ObservedNamespace) -> Guard | None:
        """This asset's guard on the namespace, if it can be read."""
        return guard.guard_of(namespace.annotations, self.guard_key)

    def stamp(self, target: ObservedTarget) -> Stamp | None:
        """This asset's stamp on the target, if it was written for that very object."""
        return stamp_of(target.annotations, self.stamp_key, target.uid) if target.uid else None

    def _fate_of(self, pod: PodRef | None) -> Fate:
        return self.observation.pods.get(pod.uid, _UNKNOWN) if pod else _UNKNOWN

    def _gone(self, pod: PodRef | None, *, waiting: bool) -> Ending | None:
        evidence = self._fate_of(pod).ended
        if evidence is None:
            return None
        if not waiting:
            return Ending(LockState.RELEASED, "HolderGone", evidence, pod=pod)
        message = f"{evidence}; to queue for others to go on with it, set spec.releaseWithHolder to false"
        return Ending(LockState.FAILED, "HolderGone", message, pod=pod)


def identity_of(lock: AssetLock) -> Identity:
    """Whom a lock is for, as admission stamped it; raises ValueError where it has not."""
    holder = lock.spec.holder
    if holder is None:
        raise ValueError(f"AssetLock {lock.metadata.name} names no holder")
    return Identity(holder.username, holder.pod_uid if lock.spec.bind_to == "Pod" else None)
