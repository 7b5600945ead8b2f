"""Who waits for whom in a namespace: finds the lock that has to give way because it waits for itself over others."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

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
    now: datetime.datetime, namespace: str, locks: Iterable[AssetLock], assets: Iterable[Asset]
) -> Decision:
    """Fail the youngest lock that waits in a deadlock; then the next, if there is one still.

    ``locks`` are those that may be in one, as `Suspects` tells, or all.
    """
    claims = {claim: lock for lock in locks if (claim := claim_of(lock))}
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


def _is_in_line(lock: AssetLock) -> bool:
    """Whether it stands in line, and others behind it."""
    waits = lock.status.state is LockState.PENDING and lock.metadata.deletion_timestamp is None
    return waits and queue.waits_at_all(lock) and not steps_aside(lock)


def claim_of(lock: AssetLock) -> Claim | None:
    """The lock as far as it holds, or stands in line."""
    held = lock.status.state is LockState.HELD
    if lock.spec.holder is None or not (held or _is_in_line(lock)):
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
