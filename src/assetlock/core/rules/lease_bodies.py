"""The bodies of the Leases that locks are: made, handed over, renewed, announced on, set free."""

from __future__ import annotations

import datetime
import math

from assetlock.core import names
from assetlock.core.acquisition import Acquisition
from assetlock.core.decision import Body
from assetlock.core.identity import QUARANTINE, Identity
from assetlock.core.locks import lease_claim
from assetlock.core.locks.lock import acquisition_of, identity_of
from assetlock.core.observation import Observation, ObservedLease
from assetlock.core.windows import term
from assetlock.model.asset import Holder
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.times import format_micro_time

_KEPT = {names.KEEP_ANNOTATION: "true"}
_RESOLUTION = datetime.timedelta(microseconds=1)
_LAST = datetime.datetime.max.replace(tzinfo=datetime.UTC) - _RESOLUTION


def claimed(
    observation: Observation,
    slot: int,
    lock: AssetLock,
    like: ObservedLease | None = None,
    lasts: datetime.timedelta | None = None,
) -> Body:
    """The Lease of a slot as ``lock`` will have it: a new one, or the present one, handed over in a single write.

    ``like``: a Lease that the lock holds already; one more of its slots then gives it no new term. ``lasts`` is how
    long its term is, if not only this asset decides on that.
    """
    present = observation.lease(slot)
    lease = present.lease if present else None
    now = format_micro_time(observation.now)
    term = like.lease.spec if like else None
    spec = {
        "holderIdentity": f"{lock.metadata.name}_{lock.metadata.uid}",
        "leaseDurationSeconds": _seconds(observation, lock, lasts),
        "acquireTime": format_micro_time(term.acquire_time) if term and term.acquire_time else now,
        "renewTime": format_micro_time(term.renew_time) if term and term.renew_time else now,
        "leaseTransitions": (lease.spec.lease_transitions or 0) + 1 if lease else 0,
    }
    annotations = {
        names.OWNER_ANNOTATION: str(identity_of(lock)),
        names.ACQUISITION_ANNOTATION: acquisition_of(lock),
        names.LOCK_ANNOTATION: lock.metadata.name,
        **(_KEPT if lease and is_kept(lease) else {}),
    }
    return _body(observation, slot, lease, annotations, spec)


def withheld(
    observation: Observation,
    slot: int,
    former: Holder,
    identity: Identity,
    began: datetime.datetime,
    lasts: datetime.timedelta,
) -> Body:
    """The Lease of a slot kept from everybody, after ``former`` had it, by ``identity``, who is nobody."""
    present = observation.lease(slot)
    lease = present.lease if present else None
    spec = {
        "holderIdentity": f"{identity.username} after {former.identity}",
        "leaseDurationSeconds": max(1, math.ceil(lasts.total_seconds())),
        "acquireTime": format_micro_time(observation.now),
        "renewTime": format_micro_time(min(began, observation.now)),
        "leaseTransitions": (lease.spec.lease_transitions or 0) + 1 if lease else 0,
    }
    annotations = {
        names.OWNER_ANNOTATION: str(identity),
        names.ACQUISITION_ANNOTATION: former.acquisition + lease_claim.WITHHELD,
        names.WITHHELD_ANNOTATION: "true",
        **(_KEPT if lease and is_kept(lease) else {}),
    }
    if identity == QUARANTINE and former.lock is not None:
        annotations[names.LOCK_ANNOTATION] = former.lock
    return _body(observation, slot, lease, annotations, spec)


def renewed(
    observation: Observation,
    acquisition: Acquisition,
    lock: AssetLock,
    lasts: datetime.timedelta | None = None,
) -> Body:
    """The first Lease of ``lock`` with a new term, which no other of its Leases outlasts.

    It begins now or, where a clock that was ahead of ours has written the last one, right after that.
    """
    observed, held = acquisition.primary, acquisition.claim
    old = observed.lease.spec
    known = (each.lease.spec.renew_time for each in (*held.leases, *held.elsewhere))
    later = (min(time, _LAST) + _RESOLUTION for time in known if time is not None)
    spec = {
        "holderIdentity": old.holder_identity,
        "leaseDurationSeconds": _seconds(observation, lock, lasts),
        "acquireTime": format_micro_time(old.acquire_time or observation.now),
        "renewTime": format_micro_time(max([observation.now, *later])),
        "leaseTransitions": old.lease_transitions or 0,
    }
    body = _body(observation, observed.slot, observed.lease, observed.lease.metadata.annotations, spec)
    meta = observed.lease.metadata
    body["metadata"] |= {
        "labels": dict(meta.labels),
        "finalizers": list(meta.finalizers),
        "ownerReferences": list(meta.owner_references),
    }
    return body


def rebound(observation: Observation, acquisition: Acquisition, lock: AssetLock) -> Body:
    """The first Lease of ``lock`` as that of another credential, for the same term."""
    observed = acquisition.primary
    old = observed.lease.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    annotations = {**observed.lease.metadata.annotations, names.OWNER_ANNOTATION: str(identity_of(lock))}
    return _body(observation, observed.slot, observed.lease, annotations, old)


def is_kept(lease: Lease) -> bool:
    """Whether the Lease stays when it is free: somebody made it free, for leader elections to take it."""
    return lease.metadata.annotations.get(names.KEEP_ANNOTATION) == "true"


def rests(lease: Lease) -> bool:
    """Whether the Lease is free and stays so."""
    return is_kept(lease) and not lease.spec.holder_identity


def freed(observation: Observation, observed: ObservedLease) -> Body:
    """A Lease that is kept, with nobody holding it."""
    spec = {"holderIdentity": "", "leaseTransitions": observed.lease.spec.lease_transitions or 0}
    return _body(observation, observed.slot, observed.lease, _KEPT, spec)


def announcement(lease: Lease, token: int) -> Body:
    """What is added to a hand-made Lease when its holder may rely on it."""
    return {
        "metadata": {
            "uid": lease.metadata.uid,
            "resourceVersion": lease.metadata.resource_version,
            "annotations": {names.TOKEN_ANNOTATION: str(token)},
        }
    }


def _seconds(observation: Observation, lock: AssetLock, lasts: datetime.timedelta | None) -> int:
    return int((lasts or term.length(observation, lock)).total_seconds())


def _body(
    observation: Observation, slot: int, lease: Lease | None, annotations: dict[str, str], spec: Body
) -> Body:
    """With nothing of what whoever had the Lease before put on it: by an owner of his it could be collected."""
    metadata: Body = {
        "name": names.lease_name(observation.name, slot),
        "namespace": observation.namespace,
        "labels": {names.ASSET_LABEL: observation.name},
        "annotations": annotations,
    }
    if lease is not None:
        metadata |= {"uid": lease.metadata.uid, "resourceVersion": lease.metadata.resource_version}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
