"""What a decision consists of: reads to confirm it, writes to apply, and when to look again.

Every write carries the resourceVersion that it was decided on, so applying a decision twice, late, or beside
another reconciler does nothing worse than to conflict.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Container
from typing import Any, TypeAlias

from assetlock.core.observation import ObservedNamespace, ObservedTarget
from assetlock.core.pods import PodRef
from assetlock.core.stuck import Subject
from assetlock.model.asset import Asset, Target
from assetlock.model.assetlock import AssetLock

Body: TypeAlias = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something to tell users about, as an Event, once its write has succeeded."""

    kind: str
    name: str
    uid: str
    reason: str
    note: str
    warning: bool = False

    @classmethod
    def about(cls, subject: Asset | AssetLock, reason: str, note: str, *, warning: bool = False) -> Event:
        """Something that happened to this very object."""
        meta = subject.metadata
        return cls(type(subject).__name__, meta.name, meta.uid, reason, note, warning)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmLease:
    """Go on only if the Lease, read live, still has this resourceVersion (``None``: does not exist)."""

    name: str
    resource_version: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmLockGone:
    """Go on only if no AssetLock of this name and UID exists, read live."""

    name: str
    uid: str


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmLock:
    """Go on only if the AssetLock, read live, still has this resourceVersion."""

    name: str
    resource_version: str


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmAsset:
    """Go on only if the Asset, read live, still has this resourceVersion (``None``: does not exist).

    ``name`` is ``None`` for the asset that is decided about.
    """

    resource_version: str | None
    name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmPod:
    """Go on only if the pod, read live, has ended, or only if nothing says that it has."""

    pod: PodRef
    ended: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmNoTarget:
    """Go on only if there is no object that this target names, read live."""

    target: Target


Confirmation: TypeAlias = (
    ConfirmLease | ConfirmLockGone | ConfirmLock | ConfirmAsset | ConfirmPod | ConfirmNoTarget
)


@dataclasses.dataclass(frozen=True, slots=True)
class CreateLease:
    """Claim a slot that has no Lease."""

    body: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ReplaceLease:
    """Claim, hand over or renew by compare-and-swap."""

    body: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class AnnounceOnLease:
    """Tell a hand-made Lease's client its fencing token."""

    name: str
    patch: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteLease:
    """Set a slot free that nobody takes over."""

    name: str
    uid: str
    resource_version: str
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class WriteAssetStatus:
    """Record holders, token, queue and conditions."""

    body: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class WriteLockStatus:
    """Announce, show the place in the queue, or end an AssetLock."""

    body: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class PatchTarget:
    """Stamp or unstamp a target."""

    target: ObservedTarget
    patch: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class PatchNamespace:
    """Label a namespace as guarded, and put the guard there or take it off."""

    namespace: ObservedNamespace
    patch: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class CreateLock:
    """Close an asset in the name of a maintenance window."""

    body: Body
    events: tuple[Event, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteLock:
    """Remove a finished AssetLock whose time to be shown is over, or end one of a maintenance window."""

    name: str
    uid: str
    resource_version: str
    events: tuple[Event, ...] = ()


Write: TypeAlias = (
    CreateLease
    | ReplaceLease
    | AnnounceOnLease
    | DeleteLease
    | WriteAssetStatus
    | WriteLockStatus
    | PatchTarget
    | PatchNamespace
    | CreateLock
    | DeleteLock
)


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """The next writes, in order; after them, or when one fails, observe and decide again.

    ``leisurely`` writes only show things (places in a queue, summaries), and may wait or be left out.
    ``independent`` writes are made though another of them can't be.
    ``wake_at`` is when time alone changes the decision.
    """

    confirm: tuple[Confirmation, ...] = ()
    writes: tuple[Write, ...] = ()
    leisurely: bool = False
    independent: bool = False
    wake_at: datetime.datetime | None = None


def subject_of(write: Write, namespace: str) -> Subject:
    """What a write, decided on in this namespace, is about."""
    match write:
        case CreateLease(body=body) | ReplaceLease(body=body):
            return Subject("Lease", namespace, body["metadata"]["name"])
        case AnnounceOnLease(name=name) | DeleteLease(name=name):
            return Subject("Lease", namespace, name)
        case WriteAssetStatus(body=body):
            return Subject("Asset", namespace, body["metadata"]["name"])
        case WriteLockStatus(body=body) | CreateLock(body=body):
            return Subject("AssetLock", namespace, body["metadata"]["name"])
        case DeleteLock(name=name):
            return Subject("AssetLock", namespace, name)
        case PatchTarget(target=observed):
            return observed.subject
        case PatchNamespace(namespace=space):
            return Subject("Namespace", None, space.name)


def without(decision: Decision, stuck: Container[Subject], namespace: str) -> Decision | None:
    """What can be made of a decision while these can't be written; ``None`` if that is nothing."""
    writes = tuple(write for write in decision.writes if subject_of(write, namespace) not in stuck)
    if len(writes) == len(decision.writes):
        return decision
    return dataclasses.replace(decision, writes=writes) if writes and decision.independent else None
