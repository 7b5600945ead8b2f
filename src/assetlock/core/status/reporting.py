"""How what was decided is told in a status: conditions brought up to date, and the body to be written back."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from assetlock.core import names
from assetlock.core.decision import Body
from assetlock.core.messages import printable
from assetlock.model.asset import Asset, AssetStatus
from assetlock.model.assetlock import AssetLock, AssetLockStatus
from assetlock.model.conditions import Condition, find_condition, set_condition
from assetlock.model.window import MaintenanceWindow, MaintenanceWindowStatus

RECONCILING, STALLED = "Reconciling", "Stalled"
WRITE_FAILED = "WriteFailed"
"""The reason while the API server refuses or fails a write that is needed."""
"""By these tools that know nothing of locks tell what is under way and what has failed (kstatus: Flux, kpt)."""

Told = tuple[str, str, str]
"""Status, reason and message of a condition."""

Reported = Asset | AssetLock | MaintenanceWindow
Status = AssetStatus | AssetLockStatus | MaintenanceWindowStatus


def whole_second(moment: datetime.datetime) -> datetime.datetime:
    """A time as Kubernetes shows it."""
    return moment.replace(microsecond=0)


def has_condition(original: Reported, kind: str) -> bool:
    """Whether the object's status says anything about a condition."""
    return find_condition(original.status.conditions, kind) is not None


def gone(original: Reported, kind: str, reason: str) -> dict[str, Told]:
    """That a condition is no more, where it ever was."""
    return {kind: ("False", reason, "")} if has_condition(original, kind) else {}


def username(lock: AssetLock) -> str:
    """Whom a lock is for, as it is shown."""
    return lock.spec.holder.username if lock.spec.holder else "somebody"


def conditions(now: datetime.datetime, original: Reported, wanted: Mapping[str, Told]) -> list[Condition]:
    """The object's conditions with these, as status, reason and message by type, brought up to date."""
    told = list(original.status.conditions)
    for kind, (status, reason, message) in wanted.items():
        told = set_condition(
            told,
            kind,
            status,
            reason,
            printable(message),
            now=whole_second(now),
            observed_generation=original.metadata.generation,
        )
    return told


def body(original: Reported, status: Status, namespace: str) -> Body:
    """The object with this status, to be written back in the version that it was read in."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": type(original).__name__,
        "metadata": {
            "name": original.metadata.name,
            "namespace": namespace,
            "uid": original.metadata.uid,
            "resourceVersion": original.metadata.resource_version,
        },
        "status": written(status),
    }


def written(status: Status) -> Body:
    """The status as it is written."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
