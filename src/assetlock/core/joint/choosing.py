"""Which assets a lock is for that takes any of those that it selects: so many as it wants that are free for it.

What is chosen is written to the lock before anything is taken, so that it takes no others. While it does not hold,
it may choose anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from assetlock.core.joint.progress import Progress, Stage
from assetlock.core.locks.lock import CLOSED
from assetlock.core.selection import described
from assetlock.model.assetlock import AssetLock

Refusal = tuple[str, str]


def wanted(lock: AssetLock) -> int:
    """How many assets the lock takes together."""
    return lock.spec.count or 1


def choice(lock: AssetLock, progress: Sequence[Progress]) -> list[str] | None:
    """The assets to take: first those that nobody else waits for. ``None`` while there are too few."""
    ready = [each.situation for each in progress if each.stage is Stage.READY]
    if len(ready) < wanted(lock):
        return None
    ready.sort(key=lambda situation: (situation.queue_length, situation.observation.name))
    return sorted(situation.observation.name for situation in ready[: wanted(lock)])


def may_soon(lock: AssetLock, progress: Sequence[Progress]) -> bool:
    """Whether there are enough as soon as what is over there has been put away."""
    soon = [each for each in progress if each.stage is not Stage.BLOCKED]
    return len(soon) >= wanted(lock)


def refusal(lock: AssetLock, progress: Sequence[Progress]) -> Refusal:
    """Reason and message: why there are too few to choose from."""
    selector, count = lock.spec.asset_selector, wanted(lock)
    selected = (
        f"{described(selector)!r} selects" if selector and described(selector) else "assetSelector selects"
    )
    if len(progress) < count:
        few = "no asset" if not progress else "one asset" if len(progress) == 1 else f"{len(progress)} assets"
        return "TooFewAssets", f"{selected} {few} in this namespace, and {_counted(count)} wanted"
    blocked = [each for each in progress if each.stage is Stage.BLOCKED]
    open_ones = [each for each in progress if each.refusal[0] not in CLOSED]
    free = len(progress) - len(blocked)
    told = next((s for s in blocked if len(open_ones) >= count and s in open_ones), blocked[0])
    reason, message = told.refusal
    return (
        reason,
        f"{free} of {len(progress)} selected assets are free, and {_counted(count)} wanted; {message}",
    )


def _counted(count: int) -> str:
    return "one is" if count == 1 else f"{count} are"
