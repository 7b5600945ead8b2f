"""Who waits for whom in a namespace: finds the lock that has to give way because it waits for itself over others."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator

from assetlock.core.acquisition import Ending, needs_all
from assetlock.core.deadlocks import graph
from assetlock.core.deadlocks.graph import Claim
from assetlock.core.decision import ConfirmLock, Decision
from assetlock.core.locks import queue
from assetlock.core.locks.lock import assets_of, steps_aside
from assetlock.core.observation import Observation
from assetlock.core.rules import ending
from assetlock.core.situation import Situation
from assetlock.core.windows.window_locks import is_windows
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock, LockState


def decide_waits(
    now: datetime.datetime, namespace: str, locks: Collection[AssetLock], assets: Iterable[Asset]
) -> Decision:
    """Fail the youngest lock that waits in a deadlock; then the next, if there is one still."""
    if not _may_be(locks):
        return Decision()
    claims = {claim: lock for lock in locks if (claim := _claim(lock))}
    found = graph.find(claims, {asset.metadata.name: asset.spec.capacity for asset in assets})
    if found is None:
        return Decision()
    victim = claims[found.victim]
    message = f"{found}; the youngest of those who wait gives way"
    situation = Situation(Observation(now, namespace, assets_of(victim)[0]))
    write = ending.finish(situation, victim, Ending(LockState.FAILED, "Deadlock", message))
    return Decision(confirm=tuple(_as_known(claims[claim]) for claim in found.cycle), writes=(write,))


def _as_known(lock: AssetLock) -> ConfirmLock:
    return ConfirmLock(lock.metadata.name, lock.metadata.resource_version)


def _may_be(locks: Collection[AssetLock]) -> bool:
    """Whether anybody at all holds and waits: most often nobody does."""
    held = {_flow(lock) for lock in locks if lock.status.state is LockState.HELD}
    return bool(held) and any(_flow(lock) in held for lock in _waiting(locks))


def _waiting(locks: Iterable[AssetLock]) -> Iterator[AssetLock]:
    return (lock for lock in locks if lock.status.state is LockState.PENDING and _deadlocks(lock))


def _deadlocks(lock: AssetLock) -> bool:
    """Whether it stands in line, and others behind it."""
    is_in_line = lock.metadata.deletion_timestamp is None and lock.spec.holder is not None
    return is_in_line and queue.waits_at_all(lock) and not steps_aside(lock)


def _claim(lock: AssetLock) -> Claim | None:
    """The lock as far as it holds, or stands in line."""
    held = lock.status.state is LockState.HELD
    if lock.spec.holder is None or not (held or next(_waiting([lock]), None)):
        return None
    created = lock.metadata.creation_timestamp or datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return Claim(
        name=lock.metadata.name,
        who=lock.spec.holder.username,
        flow=_flow(lock),
        assets=assets_of(lock),
        whole=needs_all(lock),
        held=held,
        rank=queue.rank(lock),
        age=(created, lock.metadata.uid),
        sure=bool(lock.spec.holder.pod_uid or lock.spec.holder.credential_id or lock.spec.holder_id),
    )


def _flow(lock: AssetLock) -> tuple[str | None, ...]:
    """Who holds and waits as one. A window opens its assets when it is over, whatever it waits for on others."""
    holder = lock.spec.holder
    if holder is None or is_windows(lock):
        return (lock.metadata.uid,)
    return (holder.username, holder.pod_uid, holder.credential_id, lock.spec.holder_id)
