"""Whose the Leases of an asset are, and until when.

A Lease with an empty ``holderIdentity`` is free. Deadlines come from the renewTime that admission has set, and
are never later than counted from when this process first saw that term: a time in the future can't pin a
lock. Expiring early costs a holder its lock, but the fence keeps two from writing.

An acquisition through an AssetLock may have several Leases. The one that was renewed last says until when, so
that one write renews all of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterable

from assetlock.core import names
from assetlock.core.calendars import LONGEST
from assetlock.core.identity import Identity, owner_of
from assetlock.core.observation import Limits, Observation, ObservedLease
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.durations import parse_duration


@dataclasses.dataclass(frozen=True, slots=True)
class Tenure:
    """One acquisition: its id, whose it is, its Leases by slot, and its times.

    ``lock_name`` is ``None`` for a hand-made Lease. ``term`` is the Lease that was renewed last.
    """

    acquisition: str
    identity: Identity
    lock_name: str | None
    leases: tuple[ObservedLease, ...]
    term: ObservedLease
    since: datetime.datetime
    expires: datetime.datetime
    deadline: datetime.datetime

    @property
    def slots(self) -> list[int]:
        """The slots that it takes, in order."""
        return [observed.slot for observed in self.leases]


def tenures_of(observation: Observation) -> list[Tenure]:
    """The acquisitions that the Leases record, expired or not, by their first slots."""
    found: dict[str, list[ObservedLease]] = {}
    for observed in sorted(observation.leases, key=lambda observed: observed.slot):
        if observed.lease.spec.holder_identity:
            found.setdefault(_acquisition_id(observed), []).append(observed)
    return [_tenure(observation, acquisition, leases) for acquisition, leases in found.items()]


def _tenure(observation: Observation, acquisition: str, leases: list[ObservedLease]) -> Tenure:
    term = max(leases, key=lambda observed: (_renewed(observed), -observed.slot))
    lock = next((k for k in observation.locks if k.metadata.uid == acquisition), None)
    expires = _renewed(term) + _duration(term, lock, observation)
    annotations = leases[0].lease.metadata.annotations
    return Tenure(
        acquisition=acquisition,
        identity=owner_of(annotations),
        lock_name=annotations.get(names.LOCK_ANNOTATION),
        leases=tuple(leases),
        term=term,
        since=max(_since(leases)),
        expires=expires,
        deadline=expires + observation.limits.skew,
    )


def _renewed(observed: ObservedLease) -> datetime.datetime:
    spec = observed.lease.spec
    return min(spec.renew_time or spec.acquire_time or observed.seen, observed.seen)


def _since(leases: Iterable[ObservedLease]) -> Iterable[datetime.datetime]:
    """When each Lease was taken: all are needed, so the last counts."""
    for observed in leases:
        renewed = _renewed(observed)
        yield min(observed.lease.spec.acquire_time or renewed, renewed)


def _acquisition_id(observed: ObservedLease) -> str:
    """The id of the acquisition: admission's UUID, or what tells this term from others when it was down.

    Only the operator takes several Leases under one id. One made by hand is never another's, whatever it says.
    """
    lease = observed.lease
    stamped = lease.metadata.annotations.get(names.ACQUISITION_ANNOTATION)
    told = stamped or f"{lease.metadata.uid}.{lease.spec.lease_transitions or 0}.{lease.spec.holder_identity}"
    return told if names.LOCK_ANNOTATION in lease.metadata.annotations else f"{told}.{observed.slot}"


def effective_ttl(lock: AssetLock, asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """How long a term of this lock lasts: as asked, within what asset and operator allow, in whole seconds."""
    asked = parse_duration(lock.spec.ttl) if lock.spec.ttl else default_ttl(asset, limits)
    longest = longest_ttl(asset, limits, lock)
    return datetime.timedelta(seconds=max(1, math.ceil(min(asked, longest).total_seconds())))


def default_ttl(asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """How long a lock lasts that says nothing about it."""
    return parse_duration(asset.spec.default_ttl) if asset and asset.spec.default_ttl else limits.default_ttl


def longest_ttl(asset: Asset | None, limits: Limits, lock: AssetLock | None = None) -> datetime.timedelta:
    """The longest term that asset and operator allow. People's locks for maintenance may be of any length."""
    if lock is not None and lock.spec.mode == "Maintenance":
        return LONGEST
    own = parse_duration(asset.spec.max_ttl) if asset and asset.spec.max_ttl else limits.longest_ttl
    return min(own, limits.longest_ttl)


def _duration(
    observed: ObservedLease, lock: AssetLock | None, observation: Observation
) -> datetime.timedelta:
    seconds, asset, limits = observed.lease.spec.lease_duration_seconds, observation.asset, observation.limits
    if seconds is None:
        return default_ttl(asset, limits)
    return min(datetime.timedelta(seconds=max(seconds, 0)), longest_ttl(asset, limits, lock))
