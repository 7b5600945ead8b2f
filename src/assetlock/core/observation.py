"""What is known of one asset at one moment: all that a decision may be made from."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

from assetlock.core import stuck
from assetlock.core.pods import Fate
from assetlock.core.stuck import Stuck, Subject
from assetlock.model.asset import Asset, Target
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.window import MaintenanceWindow


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The operator's settings that decisions depend on."""

    default_ttl: datetime.timedelta = datetime.timedelta(minutes=30)
    longest_ttl: datetime.timedelta = datetime.timedelta(hours=24)
    skew: datetime.timedelta = datetime.timedelta(seconds=1)


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedTarget:
    """A real object that the asset stands for, or one that still carries the asset's stamp.

    ``uid`` is ``None`` while there is no such object. ``problem`` says why it can't be fenced, ready to be
    read by a person. ``wanted`` is false for objects that the asset no longer names. ``resource`` is the plural
    with its group, ``namespace`` is ``None`` for cluster-wide kinds, ``subresources`` are those of its kind.
    """

    target: Target
    uid: str | None = None
    resource_version: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    problem: str | None = None
    wanted: bool = True
    resource: str = ""
    namespace: str | None = None
    subresources: frozenset[str] = frozenset()

    @property
    def subject(self) -> Subject:
        """What a stamp on it is about."""
        return stuck.target(self.target.api_version, self.target.kind, self.namespace, self.target.name)


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedNamespace:
    """A namespace that the asset lives in, has targets in, or left a guard on. ``problem`` as for targets."""

    name: str
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    problem: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Revocation:
    """Somebody ends these acquisitions by hand, while no operator runs. Nobody is granted the lock in that."""

    by: str
    acquisitions: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedLease:
    """The Lease of one of the asset's slots."""

    slot: int
    lease: Lease
    seen: datetime.datetime

    @property
    def name(self) -> str:
        """The Lease's name."""
        return self.lease.metadata.name

    @property
    def version(self) -> str:
        """The Lease's resourceVersion."""
        return self.lease.metadata.resource_version

    @property
    def terminating(self) -> bool:
        """Whether it is being deleted, and somebody's finalizer keeps it."""
        return self.lease.metadata.deletion_timestamp is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Behind:
    """The waiters of an asset that are behind those observed: none of them is served before one of these.

    ``next_deadline`` is when the next of all who wait gives up, or what has ended is to be forgotten. ``ahead`` has
    (by UID) how many of these are before one that is observed though it is not among the first.
    """

    count: int = 0
    next_deadline: datetime.datetime | None = None
    ahead: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Observation:
    """One asset, its AssetLocks, the Leases of its slots, its targets and their namespaces.

    ``locks`` are those that matter now; ``behind`` says what there is of others.

    ``ObservedLease.seen`` and ``locks_seen`` (by UID) say when this process first saw the present term of a Lease
    and each AssetLock, on the clock that ``now`` was read from: a time in a record is believed only
    as far as it does not lie after that. ``pods`` has (by UID) what became of pods that hold or wait, as far as that
    is known. ``denied`` has the targets that may not be updated by who set them, ``None`` while nobody knows.
    ``elsewhere`` has, by acquisition, the Leases on other assets of locks over several. ``stuck`` has the writes
    that can't be made for now.
    """

    now: datetime.datetime
    namespace: str
    name: str
    asset: Asset | None = None
    locks: tuple[AssetLock, ...] = ()
    behind: Behind = Behind()
    leases: tuple[ObservedLease, ...] = ()
    locks_seen: Mapping[str, datetime.datetime] = dataclasses.field(default_factory=dict)
    targets: tuple[ObservedTarget, ...] = ()
    namespaces: tuple[ObservedNamespace, ...] = ()
    pods: Mapping[str, Fate] = dataclasses.field(default_factory=dict)
    denied: tuple[Target, ...] | None = None
    windows: tuple[MaintenanceWindow, ...] = ()
    limits: Limits = dataclasses.field(default_factory=Limits)
    elsewhere: Mapping[str, tuple[ObservedLease, ...]] = dataclasses.field(default_factory=dict)
    revocation: Revocation | None = None
    stuck: Mapping[Subject, Stuck] = dataclasses.field(default_factory=dict)

    @property
    def capacity(self) -> int:
        """How many slots the asset has."""
        return self.asset.spec.capacity if self.asset else 1

    def lease(self, slot: int) -> ObservedLease | None:
        """The Lease of a slot."""
        return next((observed for observed in self.leases if observed.slot == slot), None)
