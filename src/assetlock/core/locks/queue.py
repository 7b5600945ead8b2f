"""Who is next: who maintains, then priority, then age, then UID; nobody whose own wait is over."""

from __future__ import annotations

import datetime
import heapq
from collections.abc import Collection, Iterable, Iterator

from assetlock.core import names, pods
from assetlock.core.locks.lock import acquisition_of, is_about, steps_aside
from assetlock.core.observation import Observation
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.durations import parse_duration
from assetlock.model.lease import Lease

SHOWN = 10
"""So many waiters are listed by name, and shown their exact place."""

CREATION_PRECISION = datetime.timedelta(seconds=1)
"""The API server cuts creationTimestamp to whole seconds."""


def is_pending(lock: AssetLock) -> bool:
    """Whether the lock has neither been announced nor ended, as its status says."""
    return lock.status.state in (None, LockState.PENDING)


def has_ended(lock: AssetLock) -> bool:
    """Whether the lock is in a state that nothing follows."""
    return lock.status.state is not None and lock.status.state.terminal


def wait_deadline(observation: Observation, lock: AssetLock) -> datetime.datetime:
    """When the waiter's own ``wait`` is over."""
    seen = observation.locks_seen.get(lock.metadata.uid, observation.now)
    created = lock.metadata.creation_timestamp
    began = min(seen, created + CREATION_PRECISION) if created else seen
    return began + parse_duration(lock.spec.wait)


def waits_at_all(lock: AssetLock) -> bool:
    """Whether the lock may wait, or fails at once when it can't be had."""
    if is_first(lock):
        return lock.spec.when_held != "Skip"
    return _has_limit(lock)


def is_first(lock: AssetLock) -> bool:
    """Whether the lock comes before all that are not for maintenance."""
    return lock.spec.mode == "Maintenance"


def _has_limit(lock: AssetLock) -> bool:
    """Whether it waits for a time and no longer. One for maintenance that says nothing waits until it is its turn."""
    return parse_duration(lock.spec.wait) > datetime.timedelta()


def in_line(observation: Observation, *, besides: Collection[str] = ()) -> list[AssetLock]:
    """The locks that may be granted now, the next one first; ``besides`` are those that hold.

    A lock that does not wait is in line for its first decision, and until its wait is over a waiter is.
    """
    labels = observation.asset.metadata.labels if observation.asset else {}
    concerned = (lock for lock in observation.locks if is_about(lock, observation.name, labels))
    pending = (lock for lock in concerned if is_pending(lock) and acquisition_of(lock) not in besides)
    return sorted((lock for lock in pending if may_be_granted(observation, lock)), key=rank)


def may_be_granted(observation: Observation, lock: AssetLock) -> bool:
    """Whether the lock asks for something, and its wait is not over."""
    return (
        is_pending(lock)
        and lock.metadata.deletion_timestamp is None
        and lock.spec.holder is not None
        and names.COPY_ANNOTATION not in lock.metadata.annotations
        and not ran_out(observation, lock)
    )


def ran_out(observation: Observation, lock: AssetLock) -> bool:
    """Whether a lock that waits has waited as long as it said."""
    return _has_limit(lock) and wait_deadline(observation, lock) <= observation.now


def gives_up_at(observation: Observation, lock: AssetLock) -> datetime.datetime | None:
    """When the waiter gives up; ``None`` if it waits for as long as it takes."""
    return wait_deadline(observation, lock) if _has_limit(lock) else None


def forget_at(lock: AssetLock) -> datetime.datetime | None:
    """When a finished lock is to be deleted; ``None`` for never, or not yet known."""
    if lock.spec.ttl_seconds_after_finished is None or lock.status.finish_time is None:
        return None
    return lock.status.finish_time + datetime.timedelta(seconds=lock.spec.ttl_seconds_after_finished)


def is_shown_far_off(lock: AssetLock, place: int) -> bool:
    """Whether a waiter behind the first ones is shown nowhere near its place."""
    shown = lock.status.queue_position
    return lock.status.state is None or shown is None or shown >= 2 * place


def pods_to_watch(locks: Iterable[AssetLock], leases: Iterable[Lease]) -> Iterator[pods.PodRef]:
    """The pods that hold, and of those that wait the next ones: the others are looked at when it is their turn."""
    found = [(lock, pod) for lock in locks if not has_ended(lock) and (pod := pods.holds_for(lock))]
    yield from (pod for lock, pod in found if not is_pending(lock))
    waiting = ((lock, pod) for lock, pod in found if is_pending(lock))
    yield from (pod for _, pod in heapq.nsmallest(SHOWN, waiting, key=lambda pair: rank(pair[0])))
    yield from (pod for lease in leases if lease.spec.holder_identity and (pod := pods.pod_of_lease(lease)))


def joint_to_look_at(locks: Iterable[AssetLock]) -> Iterator[AssetLock]:
    """Of the locks over several assets that are on one, those to which a change there may matter now.

    Of those that only wait their turn these are the first: the others are looked at when they are.
    """
    waiting = []
    for lock in locks:
        if has_ended(lock) and lock.spec.ttl_seconds_after_finished is None:
            continue
        if is_pending(lock) and lock.status.queue_position is not None and not steps_aside(lock):
            waiting.append(lock)
        else:
            yield lock
    yield from heapq.nsmallest(SHOWN, waiting, key=rank)


def rank(lock: AssetLock) -> tuple[bool, int, datetime.datetime, str]:
    """Its place among others: a lower rank is served first."""
    created = lock.metadata.creation_timestamp or datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return (not is_first(lock), -lock.spec.priority, created, lock.metadata.uid)
