"""Where a lock over several assets stands on one of them: it has it, could have it now, or why it can't."""

from __future__ import annotations

import dataclasses
import enum

from assetlock.core.acquisition import Acquisition, lacks_slots
from assetlock.core.locks import queue
from assetlock.core.locks.lock import acquisition_of, is_joint, steps_aside
from assetlock.core.rules import ending, quarantine
from assetlock.core.rules.granting import within_reach
from assetlock.core.situation import Situation
from assetlock.core.status import assetlock as lock_status
from assetlock.model.assetlock import AssetLock
from assetlock.model.conditions import find_condition


class Stage(enum.Enum):
    """How far it has come."""

    TAKEN = "it has the asset"
    READY = "it is next, and the asset is free"
    CLEARING = "somebody's time there is over, and that comes first"
    BLOCKED = "somebody else comes first, or the asset is closed"


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """How far a lock has come on one asset; ``refusal`` is reason and message when it is blocked.

    ``slots`` are those that it is to claim there, ``own`` what it has there by now.
    """

    situation: Situation
    stage: Stage
    own: Acquisition | None = None
    slots: tuple[int, ...] = ()
    refusal: tuple[str, str] = ("", "")


def progress_of(situation: Situation, lock: AssetLock) -> Progress:
    """Where the lock stands on the asset of this situation."""
    own = next((a for a in situation.active if a.id == acquisition_of(lock)), None)
    if own is not None and own.recorded:
        return Progress(situation, Stage.TAKEN, own)
    refusal = _closed(situation, lock)
    if own is not None and not refusal and not lacks_slots(lock, own.claim, situation.observation.capacity):
        return Progress(situation, Stage.TAKEN, own)
    if refusal is None and (any(ending.end_locks(situation)) or quarantine.withhold(situation)):
        return Progress(situation, Stage.CLEARING, own)
    refusal = refusal or _preceded(situation, lock)
    slots = within_reach(situation, lock)
    if refusal is None and slots and not situation.stuck_slots & {*slots}:
        return Progress(situation, Stage.READY, own, tuple(slots))
    reason, message = refusal or lock_status.waiting_for(situation, lock)
    return Progress(situation, Stage.BLOCKED, own, refusal=(reason, _on_asset(situation, reason, message)))


def _closed(situation: Situation, lock: AssetLock) -> tuple[str, str] | None:
    """Why nobody is granted the asset, or not this lock, whoever is in line."""
    if situation.obstacle:
        return situation.obstacle
    if refusal := situation.refusal(lock):
        return refusal
    asset = situation.observation.asset
    ready = find_condition(asset.status.conditions, "Ready") if asset else None
    return (ready.reason, ready.message) if ready and ready.status == "False" else None


def _preceded(situation: Situation, lock: AssetLock) -> tuple[str, str] | None:
    """Who else is to be granted the asset first, of those in line."""
    for other in situation.waiters:
        if other.metadata.uid == lock.metadata.uid:
            return None
        if situation.refusal(other) or steps_aside(other):
            continue
        if queue.waits_at_all(other) or is_joint(other) or within_reach(situation, other):
            return lock_status.waiting_for(situation, lock)
    return None


def _on_asset(situation: Situation, reason: str, message: str) -> str:
    """The message, with the asset's name where it says nothing of it."""
    name = situation.observation.name
    return message if reason == "AssetNotFound" else f"asset {name}: {message}"
