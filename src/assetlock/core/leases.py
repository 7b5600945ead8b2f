"""The bodies of the Leases that locks are: made, handed over, renewed, announced on."""

from __future__ import annotations

import datetime

from assetlock.core import names, tenure
from assetlock.core.decision import Body
from assetlock.core.situation import Situation, identity_of
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.times import format_micro_time


def claimed(situation: Situation, lock: AssetLock) -> Body:
    """The Lease as ``lock`` will hold it: a new one, or the present one, handed over in a single write."""
    observation = situation.observation
    lease = observation.lease
    now = observation.now
    spec = {
        "holderIdentity": f"{lock.metadata.name}_{lock.metadata.uid}",
        "leaseDurationSeconds": _seconds(situation, lock),
        "acquireTime": format_micro_time(now),
        "renewTime": format_micro_time(now),
        "leaseTransitions": (lease.spec.lease_transitions or 0) + 1 if lease else 0,
    }
    annotations = {
        names.OWNER_ANNOTATION: str(identity_of(lock)),
        names.ACQUISITION_ANNOTATION: lock.metadata.uid,
        names.LOCK_ANNOTATION: lock.metadata.name,
    }
    return _body(situation, lease, annotations, spec)


def renewed(situation: Situation, lock: AssetLock) -> Body:
    """The Lease of ``lock`` with a new term from now on."""
    lease = situation.observation.lease
    if lease is None:
        raise ValueError("no Lease to renew")
    spec = {
        "holderIdentity": lease.spec.holder_identity,
        "leaseDurationSeconds": _seconds(situation, lock),
        "acquireTime": format_micro_time(lease.spec.acquire_time or situation.observation.now),
        "renewTime": format_micro_time(situation.observation.now),
        "leaseTransitions": lease.spec.lease_transitions or 0,
    }
    return _body(situation, lease, lease.metadata.annotations, spec)


def announcement(lease: Lease, token: int) -> Body:
    """What is added to a hand-made Lease when its holder may rely on it."""
    return {
        "metadata": {
            "uid": lease.metadata.uid,
            "resourceVersion": lease.metadata.resource_version,
            "annotations": {names.TOKEN_ANNOTATION: str(token)},
        }
    }


def _seconds(situation: Situation, lock: AssetLock) -> int:
    observation = situation.observation
    ttl: datetime.timedelta = tenure.effective_ttl(lock, observation.asset, observation.limits)
    return int(ttl.total_seconds())


def _body(situation: Situation, lease: Lease | None, annotations: dict[str, str], spec: Body) -> Body:
    observation = situation.observation
    metadata: Body = {
        "name": names.lease_name(observation.name),
        "namespace": observation.namespace,
        "labels": {**(lease.metadata.labels if lease else {}), names.ASSET_LABEL: observation.name},
        "annotations": annotations,
    }
    if lease is not None:
        metadata |= {
            "uid": lease.metadata.uid,
            "resourceVersion": lease.metadata.resource_version,
            "finalizers": list(lease.metadata.finalizers),
            "ownerReferences": list(lease.metadata.owner_references),
        }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
