"""The routes that ask for, show, renew and release locks.

The place in the queue is an AssetLock, not a connection: when a request can't wait any longer the lock stays, and
`Location` says where to go on. Its name is chosen before the first write. With `holderId` or `Idempotency-Key` it
follows from the caller and that, so that a request that is sent twice, to any replica, means one lock.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from assetlock.kube.errors import Forbidden
from assetlock.operations import assets, locking, revoke
from assetlock.operations.locking import LockRequest
from assetlock.web import asking
from assetlock.web.answers import accepted, preferred, shown, summary
from assetlock.web.context import AssetName, CallerOf, InContext, LockId, Namespace
from assetlock.web.problems import problem
from assetlock.web.schemas import LockOut, Renewal, SeveralTerms, Terms

FORGET_AFTER = 3600
"""Seconds for which a lock that has ended is kept, and an Idempotency-Key remembered."""

router = APIRouter(tags=["locks"])

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description=f"The same key and body again give the same lock, for {FORGET_AFTER} s after it has ended.",
    ),
]
Prefer = Annotated[str | None, Header(description="`wait=20` waits up to so many seconds for an answer.")]


@router.post(
    "/api/v1/{namespace}/assets/{name}/lock", response_model=LockOut, responses={202: {"model": LockOut}}
)
async def lock_asset(
    context: InContext,
    caller: CallerOf,
    namespace: Namespace,
    name: AssetName,
    terms: Terms | None = None,
    key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """Lock one asset as the caller. The same `holderId` again renews the lock."""
    terms = terms or Terms()
    await assets.read(caller.api, namespace, name)
    request = LockRequest(assets=(name,), spec=_spec(terms))
    return await asking.lock(context, caller, namespace, request, terms, key, prefer)


@router.post("/api/v1/{namespace}/locks", response_model=LockOut, responses={202: {"model": LockOut}})
async def lock_several(
    context: InContext,
    caller: CallerOf,
    namespace: Namespace,
    terms: SeveralTerms,
    key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """Lock several assets, or any that a selector selects: all of them or none."""
    if (terms.assets is None) == (terms.selector is None):
        raise problem(422, "name assets in `assets`, or select some with `selector`: one of both")
    if terms.count is not None and terms.selector is None:
        raise problem(422, "`count` goes with `selector`")
    selector = terms.selector.model_dump(by_alias=True, exclude_defaults=True) if terms.selector else None
    request = LockRequest(tuple(terms.assets or ()), selector, terms.count, _spec(terms))
    return await asking.lock(context, caller, namespace, request, terms, key, prefer)


@router.get(
    "/api/v1/{namespace}/locks/{lock_id}", response_model=LockOut, responses={202: {"model": LockOut}}
)
async def show_lock(
    context: InContext, caller: CallerOf, namespace: Namespace, lock_id: LockId, prefer: Prefer = None
) -> Response:
    """The lock as it is; with `Prefer: wait=n` as soon as it is decided on. 202 while it waits."""
    lock = await locking.read(caller.api, namespace, lock_id)
    if not locking.is_settled(lock) and (seconds := preferred(prefer, context, 0.0)):
        lock = await locking.until_settled(caller.api, namespace, lock, seconds=seconds)
    return shown(lock) if locking.is_settled(lock) else accepted(lock)


@router.put("/api/v1/{namespace}/locks/{lock_id}", response_model=LockOut)
async def renew_lock(
    caller: CallerOf, namespace: Namespace, lock_id: LockId, renewal: Renewal | None = None
) -> Response:
    """Renew this lock. 410 once it has ended, whoever holds the asset now."""
    ttl = renewal.ttl if renewal else None
    return shown(await locking.renew(caller.api, namespace, lock_id, ttl=ttl))


@router.delete("/api/v1/{namespace}/locks/{lock_id}", status_code=204)
async def release_lock(caller: CallerOf, namespace: Namespace, lock_id: LockId) -> Response:
    """Release this lock, and no other. Also 204 when it is gone already."""
    await locking.release(caller.api, namespace, lock_id)
    return Response(status_code=204)


@router.delete("/api/v1/{namespace}/assets/{name}/lock", status_code=204)
async def release_asset(
    caller: CallerOf,
    namespace: Namespace,
    name: AssetName,
    force: bool = False,
    run: Annotated[str | None, Query(alias="executionId", max_length=253)] = None,
    holder_id: Annotated[str | None, Query(alias="holderId", max_length=253)] = None,
) -> Response:
    """Release the caller's own lock on the asset; with `force=true` and the verb `unlock` also that of others.

    With `executionId` or `holderId` only the lock of that run: when it has none, nothing happens.
    """
    if force:
        try:
            await revoke.end_acquisitions(caller.api, namespace, name)
        except Forbidden as error:
            raise problem(403, error.message) from error
        return Response(status_code=204)
    run = holder_id or run
    asset = await assets.read(caller.api, namespace, name)
    own = [
        h
        for h in asset.status.holders
        if h.identity == caller.username and h.lock and run in (None, h.holder_id)
    ]
    if len(own) > 1:
        ids = ", ".join(str(holder.lock) for holder in own)
        raise problem(409, f"you hold asset {name} more than once: release one of the locks {ids} by its id")
    if own:
        await locking.release(caller.api, namespace, own[0].lock or "")
    elif run is None and asset.status.holders:
        held = "; ".join(summary(holder) for holder in asset.status.holders)
        raise problem(
            403, f"asset {name} is held by others: {held}. force=true with the verb unlock ends their lock"
        )
    return Response(status_code=204)


def _spec(terms: Terms) -> dict[str, Any]:
    return {**terms.spec(), "ttlSecondsAfterFinished": FORGET_AFTER}
