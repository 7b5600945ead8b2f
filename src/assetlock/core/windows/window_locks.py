"""The AssetLocks that maintenance windows hold: which one an asset is to have now, in whose name, and until when.

A window's lock is like a Job of a CronJob: named after the window, the asset and what makes this closure different
from others, and owned by the window, so that it goes with it. Whatever changes while it is held (another window
begins, somebody edits the maintainers) makes it another lock: that gets in line first, then the old one goes.
"""

from __future__ import annotations

import hashlib
import json

from assetlock.core import names
from assetlock.core.decision import Body
from assetlock.core.locks import queue
from assetlock.core.observation import Observation
from assetlock.core.windows.closures import Closure
from assetlock.model.assetlock import AssetLock, LockState

_DIGITS = 8


def is_windows(lock: AssetLock) -> bool:
    """Whether a window holds the lock. Nobody else can have its name: that needs the verb ``delegate``."""
    holder = lock.spec.holder
    return holder is not None and holder.username.startswith(names.WINDOW_USER_PREFIX)


def revokes(lock: AssetLock, present: AssetLock | None) -> bool:
    """Whether a lock, which waits, ends one that somebody has now; ``None`` stands for a Lease made by hand.

    A window never ends people's maintenance, and who is about to be told that he maintains is told first.
    """
    if lock.spec.when_held != "Revoke" or not queue.is_pending(lock) or lock is present:
        return False
    if lock.metadata.deletion_timestamp is not None or lock.spec.holder is None:
        return False
    if present is None or present.spec.mode != "Maintenance":
        return True
    return not is_windows(lock) and present.status.state is LockState.HELD


def name_of(closure: Closure, asset: str) -> str:
    """The name of the lock that belongs to this closure of the asset. The policy keeps such names from users."""
    window = closure.windows[0]
    told = [
        window.metadata.uid,
        closure.since.isoformat() if closure.since else None,
        closure.when_held,
        closure.reason,
        [subject.model_dump() for subject in closure.maintainers],
    ]
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:_DIGITS]
    return f"{names.WINDOW_LOCK_PREFIX}{window.metadata.name}.{asset}.{digest}"


def body_of(closure: Closure, observation: Observation) -> Body:
    """The lock that belongs to this closure, as it is created. How long it lasts follows from the windows."""
    window = closure.windows[0]
    spec: Body = {
        "assetName": observation.name,
        "mode": "Maintenance",
        "whenHeld": closure.when_held,
        "holder": {"username": f"{names.WINDOW_USER_PREFIX}{window.metadata.name}"},
        "maintainers": [
            subject.model_dump(mode="json", by_alias=True, exclude_none=True)
            for subject in closure.maintainers
        ],
    }
    if closure.reason:
        spec["reason"] = closure.reason
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "MaintenanceWindow",
        "name": window.metadata.name,
        "uid": window.metadata.uid,
        "controller": True,
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": "AssetLock",
        "metadata": {
            "name": name_of(closure, observation.name),
            "namespace": observation.namespace,
            "labels": {names.WINDOW_LABEL: window.metadata.name},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def skipped(closure: Closure, observation: Observation) -> bool:
    """Whether this closure passes the asset by, because somebody held it when it began (``whenHeld: Skip``)."""
    lock = _present(closure, observation)
    return lock is not None and closure.when_held == "Skip" and lock.status.state is LockState.FAILED


def missing(closure: Closure, observation: Observation) -> bool:
    """Whether the closure's lock has to be made."""
    asset = observation.asset
    if asset is None or asset.metadata.deletion_timestamp is not None:
        return False
    return _present(closure, observation) is None


def out_of_place(closure: Closure | None, observation: Observation, *, hopeless: bool) -> list[AssetLock]:
    """The windows' locks that are not to be there: of other closures, once this one's is there, and dead ones.

    ``hopeless``: another one would fail as the last one did.
    """
    present = _present(closure, observation) if closure else None
    own = [
        lock for lock in observation.locks if is_windows(lock) and lock.metadata.deletion_timestamp is None
    ]
    if closure is None:
        return own
    others = [lock for lock in own if lock is not present] if present else []
    if (
        present is not None
        and queue.has_ended(present)
        and not hopeless
        and not skipped(closure, observation)
    ):
        return [present, *others]
    return others


def _present(closure: Closure, observation: Observation) -> AssetLock | None:
    name = name_of(closure, observation.name)
    return next((lock for lock in observation.locks if lock.metadata.name == name and is_windows(lock)), None)
