"""How a lock is shown, and how it is said that there is none: who holds the asset, since when, until when."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from fastapi.responses import JSONResponse

from assetlock.core.messages import moment
from assetlock.kube.errors import Forbidden, NotFound
from assetlock.model.asset import Asset, Holder
from assetlock.model.assetlock import AssetLock
from assetlock.model.conditions import find_condition
from assetlock.operations import assets
from assetlock.web.callers import Caller
from assetlock.web.context import Context
from assetlock.web.problems import LOCKED, Problem, problem
from assetlock.web.schemas import LockOut

_STATUS = {
    "AssetNotFound": 404,
    "NotFenceable": 409,
    "Deadlock": 409,
    "TooFewAssets": 409,
    "HolderUnknown": 409,
}
_HELD_BY_OTHERS = {"Locked", "Maintenance", "LockDelay", "Quarantined", "WaitTimeout", "LeaseTerminating"}


async def refusal(caller: Caller, namespace: str, lock: AssetLock) -> Problem:
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
    return {**fields, "summary": summary(holder)}


def summary(holder: Holder) -> str:
    """Who holds, since when, until when, what for."""
    since = f" since {moment(holder.acquire_time)}" if holder.acquire_time else ""
    until = f" until {moment(holder.expire_time)}" if holder.expire_time else ""
    return f"{holder.identity}{since}{until}{f' ({holder.reason})' if holder.reason else ''}"


def preferred(prefer: str | None, context: Context, otherwise: float) -> float:
    """Seconds that the client likes to wait (RFC 7240), as far as that is allowed."""
    for part in (prefer or "").split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "wait" and value.strip().isdecimal() and len(value) < 9:
            return min(float(value), context.settings.longest_wait_seconds)
    return otherwise


def shown(lock: AssetLock) -> Response:
    """The lock as it is."""
    return JSONResponse(LockOut.of(lock).model_dump(mode="json", by_alias=True))


def accepted(lock: AssetLock) -> Response:
    """The lock while it waits, and where to go on waiting."""
    waiting = LockOut.of(lock)
    headers = {"Location": f"/api/v1/{waiting.namespace}/locks/{waiting.lock_id}", "Retry-After": "1"}
    return JSONResponse(waiting.model_dump(mode="json", by_alias=True), 202, headers=headers)
