"""Whose a Lease is, and until when.

A Lease with an empty ``holderIdentity`` is free. Deadlines come from the renewTime that admission has set, and
are never later than counted from when this process first saw that term: a time in the future can't pin a
lock. Expiring early costs a holder its lock, but the fence keeps two from writing.
"""

from __future__ import annotations

import dataclasses
import datetime
import math

from assetlock.core import names
from assetlock.core.identity import Identity, owner_of
from assetlock.core.observation import Limits, Observation
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.durations import parse_duration
from assetlock.model.lease import Lease


@dataclasses.dataclass(frozen=True, slots=True)
class Tenure:
    """One acquisition: its id, whose it is, and its times. ``lock_name`` is ``None`` for a hand-made Lease."""

    acquisition: str
    identity: Identity
    lock_name: str | None
    since: datetime.datetime
    expires: datetime.datetime
    deadline: datetime.datetime


def tenure_of(observation: Observation) -> Tenure | None:
    """The acquisition that the Lease records, expired or not; ``None`` when nobody holds it."""
    lease = observation.lease
    if lease is None or not lease.spec.holder_identity:
        return None
    seen = observation.lease_seen or observation.now
    renewed = min(lease.spec.renew_time or lease.spec.acquire_time or seen, seen)
    expires = renewed + _duration(lease, observation.asset, observation.limits)
    return Tenure(
        acquisition=acquisition_id(lease),
        identity=owner_of(lease.metadata.annotations),
        lock_name=lease.metadata.annotations.get(names.LOCK_ANNOTATION),
        since=min(lease.spec.acquire_time or renewed, renewed),
        expires=expires,
        deadline=expires + observation.limits.skew,
    )


def acquisition_id(lease: Lease) -> str:
    """The id of the acquisition: admission's UUID, or what tells this term from others when it was down."""
    stamped = lease.metadata.annotations.get(names.ACQUISITION_ANNOTATION)
    return stamped or f"{lease.metadata.uid}.{lease.spec.lease_transitions or 0}.{lease.spec.holder_identity}"


def effective_ttl(lock: AssetLock, asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """How long a term of this lock lasts: as asked, within what asset and operator allow, in whole seconds."""
    asked = parse_duration(lock.spec.ttl) if lock.spec.ttl else default_ttl(asset, limits)
    return datetime.timedelta(
        seconds=max(1, math.ceil(min(asked, longest_ttl(asset, limits)).total_seconds()))
    )


def default_ttl(asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """How long a lock lasts that says nothing about it."""
    return parse_duration(asset.spec.default_ttl) if asset and asset.spec.default_ttl else limits.default_ttl


def longest_ttl(asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """The longest term that asset and operator allow."""
    own = parse_duration(asset.spec.max_ttl) if asset and asset.spec.max_ttl else limits.longest_ttl
    return min(own, limits.longest_ttl)


def _duration(lease: Lease, asset: Asset | None, limits: Limits) -> datetime.timedelta:
    seconds = lease.spec.lease_duration_seconds
    if seconds is None:
        return default_ttl(asset, limits)
    return min(datetime.timedelta(seconds=max(seconds, 0)), longest_ttl(asset, limits))
