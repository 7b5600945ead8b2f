"""The routes that ask for, show, renew and release locks.

The place in the queue is an AssetLock, not a connection: when a request can't wait any longer the lock stays, and
`Location` says where to go on. Its name is chosen before the first write. With `holderId` or `Idempotency-Key` it
follows from the caller and that, so that a request that is sent twice, to any replica, means one lock.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import JSONResponse

from assetlock.core.messages import moment
from assetlock.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from assetlock.model.asset import Asset, Holder
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.conditions import find_condition
from assetlock.model.durations import parse_duration
from assetlock.operations import assets, locking, revoke
from assetlock.operations.locking import LockRequest
from assetlock.web.callers import Caller
from assetlock.web.context import AssetName, CallerOf, Context, InContext, LockId, Namespace
from assetlock.web.problems import LOCKED, Problem, problem
from assetlock.web.schemas import LockOut, Renewal, SeveralTerms, Terms

PAYLOAD = "assetlock.dev/http-payload"
CORRELATION = "assetlock.dev/http-correlation"
FORGET_AFTER = 3600
"""Seconds for which a lock that has ended is kept, and an Idempotency-Key remembered."""

ANSWERED_WITHIN = 10.0
"""Seconds that the operator has to decide on a lock that does not wait."""

_STATUS = {
    "AssetNotFound": 404,
    "NotFenceable": 409,
    "Deadlock": 409,
    "TooFewAssets": 409,
    "HolderUnknown": 409,
}
_HELD_BY_OTHERS = {"Locked", "Maintenance", "LockDelay", "Quarantined", "WaitTimeout", "LeaseTerminating"}

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
    return await _lock(context, caller, namespace, request, terms, key, prefer)


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
    return await _lock(context, caller, namespace, request, terms, key, prefer)


@router.get(
    "/api/v1/{namespace}/locks/{lock_id}", response_model=LockOut, responses={202: {"model": LockOut}}
)
async def show_lock(
    context: InContext, caller: CallerOf, namespace: Namespace, lock_id: LockId, prefer: Prefer = None
) -> Response:
    """The lock as it is; with `Prefer: wait=n` as soon as it is decided on. 202 while it waits."""
    lock = await locking.read(caller.api, namespace, lock_id)
    if not locking.is_settled(lock) and (seconds := _preferred(prefer, context, 0.0)):
        lock = await locking.until_settled(caller.api, namespace, lock, seconds=seconds)
    return _shown(lock) if locking.is_settled(lock) else _accepted(lock)


@router.put("/api/v1/{namespace}/locks/{lock_id}", response_model=LockOut)
async def renew_lock(
    caller: CallerOf, namespace: Namespace, lock_id: LockId, renewal: Renewal | None = None
) -> Response:
    """Renew this lock. 410 once it has ended, whoever holds the asset now."""
    ttl = renewal.ttl if renewal else None
    return _shown(await locking.renew(caller.api, namespace, lock_id, ttl=ttl))


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
        held = "; ".join(_summary(holder) for holder in asset.status.holders)
        raise problem(
            403, f"asset {name} is held by others: {held}. force=true with the verb unlock ends their lock"
        )
    return Response(status_code=204)


def _spec(terms: Terms) -> dict[str, Any]:
    return {**terms.spec(), "ttlSecondsAfterFinished": FORGET_AFTER}


async def _lock(
    context: Context,
    caller: Caller,
    namespace: str,
    request: LockRequest,
    terms: Terms,
    key: str | None,
    prefer: str | None,
) -> Response:
    payload = hashlib.sha256(
        json.dumps([request.body("", {}), namespace], sort_keys=True).encode()
    ).hexdigest()
    name = _name(caller, namespace, request, terms, key)
    annotations = {PAYLOAD: payload, **_correlation(terms)}
    lock, again = await _asked(caller, namespace, request, name, annotations, payload, by_key=key is not None)
    wait = parse_duration(terms.wait).total_seconds() if terms.wait else 0.0
    longest = _preferred(prefer, context, context.settings.longest_wait_seconds)
    seconds = min(longest, wait + ANSWERED_WITHIN)
    lock = await locking.until_settled(caller.api, namespace, lock, seconds=seconds)
    if lock.status.state is LockState.HELD:
        if again and key is None:
            lock = await locking.renew(caller.api, namespace, name, ttl=terms.ttl)
        return _shown(lock)
    if locking.is_settled(lock):
        raise await _refusal(caller, namespace, lock)
    if wait:
        return _accepted(lock)
    await locking.release(caller.api, namespace, name, uid=lock.metadata.uid)
    raise problem(503, "no operator decided on the lock in time; it was withdrawn", retry_after=5.0)


def _name(caller: Caller, namespace: str, request: LockRequest, terms: Terms, key: str | None) -> str:
    """The AssetLock's name: random, or what the caller, the assets and the run or key come to."""
    if key is None and terms.run is None:
        return f"http-{secrets.token_hex(10)}"
    about = ["key", key] if key is not None else ["run", terms.run, list(request.assets), request.selector]
    text = json.dumps([caller.username, namespace, about], sort_keys=True)
    return f"http-{hashlib.sha256(text.encode()).hexdigest()[:40]}"


async def _asked(
    caller: Caller,
    namespace: str,
    request: LockRequest,
    name: str,
    annotations: dict[str, str],
    payload: str,
    *,
    by_key: bool,
) -> tuple[AssetLock, bool]:
    """The lock of that name, created or found; whether it was there before."""
    for _ in range(locking.TRIES):
        try:
            created = await locking.ask(caller.api, namespace, request, name=name, annotations=annotations)
        except AlreadyExists:
            pass
        else:
            return created, False
        try:
            found = await locking.read(caller.api, namespace, name)
        except NotFound:
            continue
        if found.spec.holder is None or found.spec.holder.username != caller.username:
            raise Forbidden(403, "Forbidden", f"AssetLock {name} belongs to somebody else")
        if by_key:
            if found.metadata.annotations.get(PAYLOAD) != payload:
                raise problem(422, "this Idempotency-Key was used with another body")
            return found, True
        if found.status.state is None or not found.status.state.terminal:
            return found, True
        await locking.release(caller.api, namespace, name, uid=found.metadata.uid)
    raise KubeError(f"AssetLock {name} changes all the time; try again")


async def _refusal(caller: Caller, namespace: str, lock: AssetLock) -> Problem:
    """Why the lock was not granted, and who has the asset."""
    acquired = find_condition(lock.status.conditions, "Acquired")
    reason, message = (acquired.reason, acquired.message) if acquired else ("", "")
    detail = message or f"the lock is {lock.status.state}"
    if reason not in _HELD_BY_OTHERS:
        return problem(
            _STATUS.get(reason, 410 if lock.status.acquire_time else 409), detail, extra={"reason": reason}
        )
    found: list[Asset] = []
    for name in LockOut.of(lock).assets:
        try:
            found.append(await assets.read(caller.api, namespace, name))
        except (NotFound, Forbidden):
            continue
    holders = [holder for asset in found for holder in asset.status.holders]
    own = next((h.lock for h in holders if h.identity == caller.username and h.lock), None)
    if own:
        detail += f". You hold it already: lockId {own}; PUT …/locks/{own} renews it"
    until = max((holder.expire_time for holder in holders if holder.expire_time), default=None)
    extra = {
        "reason": reason,
        "mode": holders[0].mode if holders else None,
        "holders": [_holder(holder) for holder in holders],
        "since": min((moment(h.acquire_time) for h in holders if h.acquire_time), default=None),
        "until": moment(until) if until else None,
        "queueLength": sum(asset.status.queue_length for asset in found),
    }
    return Problem(LOCKED, detail, retry_after=_soon(until, lock), extra=extra)


def _soon(until: Any, lock: AssetLock) -> float:
    """Seconds until it is worth another try: until the lock ends, a minute at most."""
    ended = lock.status.finish_time
    return min(60.0, max(1.0, (until - ended).total_seconds())) if until and ended else 10.0


def _holder(holder: Holder) -> dict[str, Any]:
    fields: dict[str, Any] = holder.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        include={
            "lock",
            "mode",
            "identity",
            "pod_name",
            "acquire_time",
            "expire_time",
            "reason",
            "holder_id",
        },
    )
    return {**fields, "summary": _summary(holder)}


def _summary(holder: Holder) -> str:
    since = f" since {moment(holder.acquire_time)}" if holder.acquire_time else ""
    until = f" until {moment(holder.expire_time)}" if holder.expire_time else ""
    return f"{holder.identity}{since}{until}{f' ({holder.reason})' if holder.reason else ''}"


def _correlation(terms: Terms) -> dict[str, str]:
    given = terms.model_dump(
        by_alias=True,
        exclude_none=True,
        include={"execution_id", "flow_id", "flow_namespace", "task_run_id"},
    )
    return {CORRELATION: json.dumps(given, sort_keys=True)} if given else {}


def _preferred(prefer: str | None, context: Context, otherwise: float) -> float:
    """Seconds that the client likes to wait (RFC 7240), as far as that is allowed."""
    for part in (prefer or "").split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "wait" and value.strip().isdecimal() and len(value) < 9:
            return min(float(value), context.settings.longest_wait_seconds)
    return otherwise


def _shown(lock: AssetLock) -> Response:
    return JSONResponse(LockOut.of(lock).model_dump(mode="json", by_alias=True))


def _accepted(lock: AssetLock) -> Response:
    shown = LockOut.of(lock)
    headers = {"Location": f"/api/v1/{shown.namespace}/locks/{shown.lock_id}", "Retry-After": "1"}
    return JSONResponse(shown.model_dump(mode="json", by_alias=True), 202, headers=headers)
