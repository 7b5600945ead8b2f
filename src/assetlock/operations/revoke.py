"""End the lock of others: by a mark on its Lease, which the operator acts on."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Sequence

from assetlock.core import names
from assetlock.core.identity import QUARANTINE
from assetlock.core.locks.lease_claim import LeaseClaim, acquisition_id, lease_claims_of
from assetlock.core.locks.lock import assets_of, lock_uid
from assetlock.core.messages import HeldBy
from assetlock.core.observation import Observation, ObservedLease
from assetlock.core.rules.revoking import revocation_of
from assetlock.kube import reviews
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, Forbidden, KubeError, Locked, NotFound, OutcomeUnknown
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES, Object
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease

TRIES = 10
FREED_WITHIN = 10.0
PAUSE = 0.2


async def end_acquisitions(api: Api, namespace: str, asset: str) -> list[LeaseClaim]:
    """Have the operator end what each present holder of the asset has; gives whose it was. Who waits goes on waiting.

    Raises `NotFound` if there is no such asset, `Forbidden` without the right to end others' locks.
    """
    observation = await _observed(api, namespace, asset)
    me = (await reviews.myself(api)).username
    ended = revocation_of(observation, me).acquisitions
    return [
        claim
        for claim in lease_claims_of(observation)
        if claim.acquisition in ended and await _end(api, namespace, claim, me)
    ]


async def _observed(api: Api, namespace: str, asset: str) -> Observation:
    """Who holds, and who waits."""
    present = await _asset(api, namespace, asset)
    leases = await api.list(LEASES, namespace, label_selector=f"{names.ASSET_LABEL}={asset}")
    locks = map(AssetLock.model_validate, (await api.list(ASSETLOCKS, namespace)).items)
    return Observation(
        datetime.datetime.now(datetime.UTC),
        namespace,
        asset,
        asset=present,
        locks=tuple(lock for lock in locks if asset in assets_of(lock)),
        leases=_leases(asset, leases.items),
    )


async def is_over(api: Api, namespace: str, asset: str, ended: list[LeaseClaim]) -> bool:
    """Whether the operator takes these off the asset within a few seconds."""
    gone = {claim.acquisition for claim in ended}
    deadline = asyncio.get_running_loop().time() + FREED_WITHIN
    while gone & {h.acquisition for h in (await _asset(api, namespace, asset)).status.holders}:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(PAUSE)
    return True


async def _end(api: Api, namespace: str, claim: LeaseClaim, me: str) -> bool:
    """Say on the Lease that it is revoked, or delete what is quarantined; never another acquisition's."""
    quarantined = claim.identity == QUARANTINE and claim.lock_name is not None
    resource, name = (ASSETLOCKS, claim.lock_name or "") if quarantined else (LEASES, claim.leases[0].name)
    perhaps_done = False
    for _ in range(TRIES):
        try:
            present = await api.get(resource, namespace, name)
            if not _is_of(claim, present):
                return perhaps_done
            uid, version = present["metadata"]["uid"], present["metadata"]["resourceVersion"]
            if quarantined:
                await api.delete(resource, namespace, name, uid=uid, resource_version=version)
            else:
                mark = {names.REVOKED_ANNOTATION: me}
                meta = {"uid": uid, "resourceVersion": version, "annotations": mark}
                await api.merge_patch(resource, namespace, name, {"metadata": meta})
        except NotFound:
            return perhaps_done
        except Locked as error:
            raise Forbidden(error.status, error.reason, error.message) from error
        except OutcomeUnknown:
            perhaps_done = True
        except Conflict:
            continue
        else:
            return True
    raise KubeError(f"{resource.kind} {name} changes all the time; try again")


def _is_of(claim: LeaseClaim, present: Object) -> bool:
    meta = present["metadata"]
    if present["kind"] == ASSETLOCKS.kind:
        return bool(meta["uid"] == lock_uid(claim.acquisition))
    leases = _leases(meta["labels"].get(names.ASSET_LABEL, ""), [present])
    return [acquisition_id(lease) for lease in leases if lease.lease.spec.holder_identity] == [
        claim.acquisition
    ]


def _leases(asset: str, leases: Sequence[Object]) -> tuple[ObservedLease, ...]:
    now = datetime.datetime.now(datetime.UTC)
    return tuple(
        ObservedLease(slot, Lease.model_validate(raw), now)
        for raw in leases
        if (slot := names.slot_of(asset, raw["metadata"]["name"])) is not None
    )


def whose(claim: LeaseClaim) -> str:
    """What somebody held with, for people."""
    identity = claim.identity
    by = f"AssetLock {claim.lock_name}" if claim.lock_name else f"Lease {claim.leases[0].name}"
    return f"{by} of {HeldBy(identity.username, identity.pod_uid, identity.credential_id, claim.since)}"


async def _asset(api: Api, namespace: str, name: str) -> Asset:
    return Asset.model_validate(await api.get(ASSETS, namespace, name))
