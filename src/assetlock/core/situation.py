"""What an observation means: who holds the asset, whose time has ended, who waits, what stands in the way."""

from __future__ import annotations

import datetime
import functools

from assetlock.core import names, pods
from assetlock.core.acquisition import (
    Acquisition,
    Ending,
    acquired,
    end_with_pod,
    lacks_slots,
    taken_by,
)
from assetlock.core.fence import namespace_fence, other_assets
from assetlock.core.fence.namespace_fence import NamespaceFence
from assetlock.core.fence.stamp import Stamp, stamp_of, unstampable
from assetlock.core.identity import Identity
from assetlock.core.locks import queue
from assetlock.core.locks.lease_claim import LeaseClaim, lease_claims_of, lock_of
from assetlock.core.locks.lock import acquisition_of, has_all, token_told
from assetlock.core.observation import Observation, ObservedLease, ObservedNamespace, ObservedTarget
from assetlock.core.stuck import Stuck, Subject, unseen
from assetlock.core.windows import window_locks
from assetlock.core.windows.gate import Gate
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock, LockState

HIGHEST_BELIEVED = 2**40
"""No token comes near: one that is there was made up, and must not use up the numbers that are left."""


class Situation:
    """An observation, read. Nothing here is stored anywhere: it is derived anew for each decision."""

    def __init__(self, observation: Observation) -> None:
        self.observation = observation

    @functools.cached_property
    def stamp_key(self) -> str:
        """The annotation that this asset's stamps stand in."""
        return names.stamp_key(self.observation.name, self.observation.namespace)

    @functools.cached_property
    def gate(self) -> Gate:
        """What maintenance windows make of the present moment."""
        return Gate(self.observation)

    @functools.cached_property
    def acquisitions(self) -> list[Acquisition]:
        """All that the Leases record, over or not, by their first slots."""
        return [
            acquired(self.observation, claim, self.gate, unfenceable=self.unprotected or self._in_vain(claim))
            for claim in lease_claims_of(self.observation)
        ]

    def _in_vain(self, claim: LeaseClaim) -> str | None:
        """Why a lock that does not wait, and has just claimed its Lease, can't hold: another asset was first."""
        lock = lock_of(self.observation, claim.acquisition)
        if lock is None or queue.waits_at_all(lock) or not queue.is_pending(lock):
            return None
        return other_assets.shut_out(self.observation.targets, self.stamp_key, _let_in(lock))

    @functools.cached_property
    def active(self) -> list[Acquisition]:
        """Those that are not over."""
        return [acquisition for acquisition in self.acquisitions if acquisition.ending is None]

    @functools.cached_property
    def holders(self) -> list[Acquisition]:
        """Those who hold, or are about to be told that they do: never more than the asset's capacity allows.

        Who is on the Asset stays, even if the capacity was lowered since. The next ones come on as there is room.
        """
        holders = [acquisition for acquisition in self.active if acquisition.recorded]
        for acquisition in self.active:
            if not acquisition.recorded and self._fits(acquisition, holders):
                holders.append(acquisition)
        if self.observation.revocation is not None:
            return [holder for holder in holders if not holder.claim.withheld]
        return holders

    def _fits(self, acquisition: Acquisition, holders: list[Acquisition]) -> bool:
        if acquisition.lock is not None and self.refusal(acquisition.lock):
            return False
        if acquisition.lock is not None and not self._has_the_others(acquisition.lock, acquisition):
            return False
        if acquisition.lock is not None and acquisition.exclusive:
            lacking = lacks_slots(acquisition.lock, acquisition.claim, self.observation.capacity)
            return not holders and not lacking
        within = acquisition.primary.slot < self.observation.capacity
        return within and self.has_room(holders)

    def _has_the_others(self, lock: AssetLock, acquisition: Acquisition) -> bool:
        """Whether the lock has its other assets too, if it is for several."""
        return has_all(lock, self.observation.name, acquisition.claim.elsewhere)

    def has_room(self, holders: list[Acquisition]) -> bool:
        """Whether one more may hold beside these."""
        return len(holders) < self.observation.capacity and not any(holder.exclusive for holder in holders)

    @functools.cached_property
    def held(self) -> set[str]:
        """The ids of what the holders have acquired."""
        return {holder.id for holder in self.holders}

    @functools.cached_property
    def collectors(self) -> list[Acquisition]:
        """AssetLocks that have Leases but not all that they need, those first in line first."""
        collecting = [a for a in self.active if a.lock is not None and a.id not in self.held]
        return sorted(collecting, key=lambda a: queue.rank(a.lock) if a.lock else ())

    @functools.cached_property
    def displaced(self) -> list[AssetLock]:
        """Those that were told that they hold, whom the Asset does not name, and who would not fit on it."""
        asset = self.observation.asset
        if asset is None or asset.metadata.deletion_timestamp is not None:
            return []
        told = (a.lock for a in self.active if a.lock is not None and a.id not in self.held)
        return [lock for lock in told if lock.status.state is LockState.HELD]

    @functools.cached_property
    def overcommitted(self) -> list[Acquisition]:
        """Leases made by hand where there is no room: beyond the capacity, or beside an Exclusive holder."""
        return [a for a in self.active if a.by_hand and a.id not in self.held]

    @functools.cached_property
    def vacant(self) -> dict[int, ObservedLease | None]:
        """The slots that nobody has, with the Lease that is left there, if one is. Not those that can't be taken."""
        taken = {slot for acquisition in self.active for slot in acquisition.claim.slots}
        leases = {observed.slot: observed for observed in self.observation.leases}
        slots = sorted({*range(self.observation.capacity), *leases} - taken)
        found = {slot: leases.get(slot) for slot in slots}
        return {slot: lease for slot, lease in found.items() if lease is None or not lease.terminating}

    @functools.cached_property
    def waiters(self) -> list[AssetLock]:
        """Those in line behind the holders: first who takes over from one, then who has begun to collect slots."""
        line = queue.in_line(self.observation, besides=self.held)
        waiters = [
            lock for lock in line if self.given_up_by_pod(lock) is None and not self.takes_nothing(lock)
        ]
        begun = {collector.id for collector in self.collectors}
        if not begun and not any(lock.spec.take_over for lock in waiters):
            return waiters
        return sorted(
            waiters,
            key=lambda k: (
                k.spec.take_over is None,
                not queue.is_first(k) and acquisition_of(k) not in begun,
            ),
        )

    @property
    def queue_length(self) -> int:
        """How many are in line, those among them that are not looked at."""
        return len(self.waiters) + self.observation.behind.count

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """The places in line of those that are looked at, by UID; 1 is next."""
        ahead = self.observation.behind.ahead
        uids = (lock.metadata.uid for lock in self.waiters)
        return {uid: place + ahead.get(uid, 0) for place, uid in enumerate(uids, start=1)}

    def place_of(self, lock: AssetLock) -> int | None:
        """Its place in line; ``None`` if it is in none, or behind those that are looked at."""
        return self.places.get(lock.metadata.uid)

    @functools.cached_property
    def patient(self) -> dict[str, datetime.datetime | None]:
        """Those in line, by UID, who may wait on, and until when if there is an end to it."""
        observation = self.observation
        waiting = (lock for lock in self.waiters if queue.waits_at_all(lock) or self._relieves(lock))
        return {lock.metadata.uid: queue.gives_up_at(observation, lock) for lock in waiting}

    def _relieves(self, lock: AssetLock) -> bool:
        """Whether a window's lock follows another window's, which goes as soon as this one is in line."""
        locks = [holder.lock for holder in self.holders]
        return (
            window_locks.is_windows(lock)
            and bool(locks)
            and all(k and window_locks.is_windows(k) for k in locks)
        )

    def takes_nothing(self, lock: AssetLock) -> bool:
        """Whether the lock is to take over from one that does not have the asset."""
        return lock.spec.take_over is not None and not any(
            a.id == acquisition_of(lock) or taken_by(a.claim, lock) for a in self.acquisitions
        )

    def given_up_by_pod(self, lock: AssetLock) -> Ending | None:
        """How a lock that waits ends with the pod that it is for, once that has ended."""
        return end_with_pod(self.observation, pods.holds_for(lock), waiting=True)

    @functools.cached_property
    def unfenceable(self) -> str | None:
        """Why one of the targets can't be fenced, ready to be read; ``None`` when all can."""
        wanted = [target for target in self.observation.targets if target.wanted]
        places = {target.namespace for target in wanted}
        problems = (
            *(target.problem for target in wanted),
            *(None if self.stamp(target) else unstampable(target) for target in wanted),
            *map(namespace_fence.unguardable, wanted),
            *(
                space.problem or namespace_fence.overfull(space)
                for space in self.observation.namespaces
                if space.name in places
            ),
        )
        return next(filter(None, problems), None)

    @functools.cached_property
    def unprotected(self) -> str | None:
        """Why a lock would not protect what it must; ``None`` when it would, or when advice is enough."""
        asset = self.observation.asset
        return None if asset is not None and asset.spec.enforcement == "Advisory" else self.unfenceable

    @functools.cached_property
    def obstacle(self) -> tuple[str, str] | None:
        """Reason and message when nobody may be granted the lock, whoever asks."""
        observation = self.observation
        if observation.revocation is not None:
            return "Revoked", "the lock is being revoked offline; nobody is granted it until an operator runs"
        if observation.asset is None or observation.asset.metadata.deletion_timestamp is not None:
            return "AssetNotFound", f"no asset {observation.name!r} in namespace {observation.namespace!r}"
        if self.unprotected:
            return "NotFenceable", self.unprotected
        return None

    def refusal(self, lock: AssetLock) -> tuple[str, str] | None:
        """Reason and message when this lock may not be granted now, whoever has the asset."""
        if refusal := self.gate.refusal(lock):
            return refusal
        if self.observation.revocation is not None:
            return None
        why = other_assets.shut_out(self.observation.targets, self.stamp_key, _let_in(lock))
        return (other_assets.REASON, why) if why else None

    @functools.cached_property
    def unseen(self) -> Stuck | None:
        """Why it can't be seen now what the targets are; ``None`` when it can."""
        return self.observation.stuck.get(unseen(self.observation.namespace, self.observation.name))

    @functools.cached_property
    def stuck_slots(self) -> set[int]:
        """Those whose Leases can't be written now."""
        leases = (subject.name for subject in self.observation.stuck if subject.kind == "Lease")
        slots = (names.slot_of(self.observation.name, lease) for lease in leases)
        return {slot for slot in slots if slot is not None}

    @functools.cached_property
    def held_up(self) -> Stuck | None:
        """What can't be written now that a grant may need, ready to be read."""
        if self.unseen is not None:
            return self.unseen
        observation = self.observation
        about = [
            *(Subject("Lease", observation.namespace, self._lease_name(slot)) for slot in self.stuck_slots),
            Subject("Asset", observation.namespace, observation.name),
            *(Subject("Namespace", None, space.name) for space in observation.namespaces),
            *(target.subject for target in observation.targets),
        ]
        found = ((each, observation.stuck.get(each)) for each in about) if observation.stuck else ()
        told = (Stuck(f"{what} can't be written: {why.why}", why.failed) for what, why in found if why)
        return next(told, None)

    def _lease_name(self, slot: int) -> str:
        return names.lease_name(self.observation.name, slot)

    @functools.cached_property
    def former(self) -> list[Holder]:
        """Those whom the Asset's status still names, and who do not hold any more."""
        holders = self.observation.asset.status.holders if self.observation.asset else []
        return [holder for holder in holders if holder.acquisition not in self.held]

    @functools.cached_property
    def mark(self) -> int:
        """The highest token that the Asset has recorded."""
        return self.observation.asset.status.fencing_token if self.observation.asset else 0

    @functools.cached_property
    def token_in_use(self) -> int:
        """The highest token that the Asset, its targets, their namespaces, its AssetLocks or its Leases have seen."""
        return max(self.mark, *self._tokens_seen)

    @functools.cached_property
    def stray_token(self) -> int:
        """The highest token that was seen anywhere and that none of those who stand has."""
        known = {a.token_announced for a in self.active} | {
            a.recorded.fencing_token for a in self.active if a.recorded
        }
        return max((token for token in [self.mark, *self._tokens_seen] if token not in known), default=0)

    @functools.cached_property
    def _tokens_seen(self) -> list[int]:
        stamps = (self.stamp(target) for target in self.observation.targets)
        stamped = [holder.token for stamp in stamps if stamp for holder in stamp.holders]
        guards = map(self.guard, self.observation.namespaces)
        guarded = [holder.token for found in guards if found for holder in found.holders]
        told = [self._told_by(lock) for lock in self.observation.locks]
        seen = [*stamped, *guarded, *told, *(a.token_announced or 0 for a in self.active)]
        return [0, *(token for token in seen if token < HIGHEST_BELIEVED)]

    def _told_by(self, lock: AssetLock) -> int:
        """The token on this asset that the lock has, or had."""
        return token_told(lock, self.observation.name) or lock.status.fencing_token or 0

    @functools.cached_property
    def namespace_fence_key(self) -> str:
        """The annotation that this asset's guards stand in."""
        return names.namespace_fence_key(self.observation.name, self.observation.namespace)

    def guard(self, namespace: ObservedNamespace) -> NamespaceFence | None:
        """This asset's guard on the namespace, if it can be read."""
        return namespace_fence.namespace_fence_of(namespace.annotations, self.namespace_fence_key)

    def stamp(self, target: ObservedTarget) -> Stamp | None:
        """This asset's stamp on the target, if it counts: written for that very object, which has the label."""
        if target.uid is None or target.labels.get(names.FENCED_LABEL) != "true":
            return None
        return stamp_of(target.annotations, self.stamp_key, target.uid)


def _let_in(lock: AssetLock) -> set[str]:
    """The users and groups that a stamp for the lock would name."""
    holder = {lock.spec.holder.username} if lock.spec.holder else set()
    return holder | {Identity.of(subject).username for subject in lock.spec.maintainers}
