"""Whose the Leases of an asset are, and until when.

A Lease with an empty ``holderIdentity`` is free. Deadlines come from the renewTime that admission has set, and
are never later than counted from when this process first saw that term: a time in the future can't pin a
lock. Expiring early costs a holder its lock, but the fence keeps two from writing.

An acquisition through an AssetLock may have several Leases, on several assets too. The one that was renewed last says
until when, so that one write renews all of them.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable

from assetlock.core import names
from assetlock.core.identity import QUARANTINE, Identity, owner_of
from assetlock.core.locks.lock import acquisition_of, asset_of, identity_of
from assetlock.core.locks.ttl import default_ttl, lock_delay, longest_ttl
from assetlock.core.observation import Observation, ObservedLease
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.durations import parse_duration

RECORD_PRECISION = datetime.timedelta(seconds=1)
"""What is recorded on an Asset is cut to whole seconds."""

WITHHELD = ".withheld"
"""Ends the id of an acquisition by nobody, which keeps others out after the one whose id it begins with."""


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseClaim:
    """One acquisition: its id, whose it is, its Leases by slot, and its times.

    ``lock_name`` is ``None`` for a hand-made Lease. ``elsewhere`` are its Leases on other assets. ``term`` is the
    Lease that was renewed last. ``withheld`` is true if nobody has it: it keeps others out. What has no ``deadline``
    does not run out. ``term_ends`` is what the Lease alone says. ``renewed`` is when its AssetLock was renewed, if
    the Lease does not say so yet.
    """

    acquisition: str
    identity: Identity
    lock_name: str | None
    leases: tuple[ObservedLease, ...]
    elsewhere: tuple[ObservedLease, ...]
    term: ObservedLease
    since: datetime.datetime
    expires: datetime.datetime | None
    deadline: datetime.datetime | None
    withheld: bool
    term_ends: datetime.datetime
    renewed: datetime.datetime | None = None

    @property
    def capped(self) -> bool:
        """Whether ``maxHold`` ends it before its term does."""
        return self.expires is not None and self.expires < self.term_ends

    @property
    def slots(self) -> list[int]:
        """The slots that it takes, in order."""
        return [observed.slot for observed in self.leases]


def lease_claims_of(observation: Observation) -> list[LeaseClaim]:
    """The acquisitions that the Leases record, expired or not, by their first slots."""
    found: dict[str, list[ObservedLease]] = {}
    for observed in sorted(observation.leases, key=lambda observed: observed.slot):
        if observed.lease.spec.holder_identity:
            found.setdefault(acquisition_id(observed), []).append(observed)
    return [_claim(observation, acquisition, leases) for acquisition, leases in found.items()]


def _claim(observation: Observation, acquisition: str, leases: list[ObservedLease]) -> LeaseClaim:
    elsewhere = observation.elsewhere.get(acquisition, ())
    in_order = sorted((*leases, *elsewhere), key=lambda one: (asset_of(one.lease), one.slot))
    term = max(in_order, key=_renewed)
    lock = lock_of(observation, acquisition)
    since = max(_since(leases))
    annotations = leases[0].lease.metadata.annotations
    withheld = names.WITHHELD_ANNOTATION in annotations
    # Its credential may have been replaced since the Lease was written.
    has_holder = lock is not None and lock.spec.holder is not None
    identity = (
        identity_of(lock) if lock is not None and has_holder and not withheld else owner_of(annotations)
    )
    ends = _renewed(term) + _duration(term, lock, observation)
    longest = _longest_hold(observation.asset, acquisition, since)
    last = longest if longest and not (lock and lock.spec.mode == "Maintenance") else ends
    expires = None if withheld and identity == QUARANTINE else min(ends, last)
    return LeaseClaim(
        acquisition=acquisition,
        identity=identity,
        lock_name=annotations.get(names.LOCK_ANNOTATION),
        leases=tuple(leases),
        elsewhere=elsewhere,
        term=term,
        since=since,
        expires=expires,
        deadline=expires + observation.limits.skew if expires else None,
        withheld=withheld,
        term_ends=ends,
        renewed=_renewed_since(term, lock, observation.now),
    )


def lock_of(observation: Observation, acquisition: str) -> AssetLock | None:
    """The AssetLock whose present acquisition this is."""
    return next((lock for lock in observation.locks if acquisition_of(lock) == acquisition), None)


def _longest_hold(
    asset: Asset | None, acquisition: str, since: datetime.datetime
) -> datetime.datetime | None:
    """When ``maxHold`` ends it, whatever the Lease says by now of when it began."""
    if asset is None or asset.spec.max_hold is None:
        return None
    recorded = next((h.acquire_time for h in asset.status.holders if h.acquisition == acquisition), None)
    began = min(since, recorded + RECORD_PRECISION) if recorded else since
    return began + parse_duration(asset.spec.max_hold)


def _renewed_since(
    term: ObservedLease, lock: AssetLock | None, now: datetime.datetime
) -> datetime.datetime | None:
    """When the holder renewed, by admission's clock. What lies ahead of ours counts when it has come."""
    renewed = lock.spec.renew_time if lock is not None else None
    return renewed if renewed is not None and _renewed(term) < renewed <= now else None


def _renewed(observed: ObservedLease) -> datetime.datetime:
    spec = observed.lease.spec
    return min(spec.renew_time or spec.acquire_time or observed.seen, observed.seen)


def _since(leases: Iterable[ObservedLease]) -> Iterable[datetime.datetime]:
    """When each Lease was taken: all are needed, so the last counts."""
    for observed in leases:
        renewed = _renewed(observed)
        yield min(observed.lease.spec.acquire_time or renewed, renewed)


def acquisition_id(observed: ObservedLease) -> str:
    """The id of the acquisition: admission's UUID, or what tells this term from others when it was down.

    Only the operator takes several Leases under one id. One made by hand is never another's, whatever it says.
    """
    lease = observed.lease
    stamped = lease.metadata.annotations.get(names.ACQUISITION_ANNOTATION)
    told = stamped or f"{lease.metadata.uid}.{lease.spec.lease_transitions or 0}.{lease.spec.holder_identity}"
    ours = {names.LOCK_ANNOTATION, names.WITHHELD_ANNOTATION} & lease.metadata.annotations.keys()
    return told if ours else f"{told}.{observed.slot}"


def _duration(
    observed: ObservedLease, lock: AssetLock | None, observation: Observation
) -> datetime.timedelta:
    seconds, asset, limits = observed.lease.spec.lease_duration_seconds, observation.asset, observation.limits
    if names.WITHHELD_ANNOTATION in observed.lease.metadata.annotations:
        return lock_delay(asset)
    if seconds is None:
        return default_ttl(asset, limits)
    return min(datetime.timedelta(seconds=max(seconds, 0)), longest_ttl(asset, limits, lock))
