"""Ask for a lock in the name of a caller, and wait for it as long as one request may.

With ``holderId`` or `Idempotency-Key` the AssetLock's name follows from the caller and that, so that a request that
is sent twice, to any replica, means one lock.
"""

from __future__ import annotations

import hashlib
import json
import secrets

from fastapi import Response

from assetlock.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.durations import parse_duration
from assetlock.operations import locking
from assetlock.operations.locking import LockRequest
from assetlock.web.answers import accepted, preferred, refusal, shown
from assetlock.web.callers import Caller
from assetlock.web.context import Context
from assetlock.web.problems import problem
from assetlock.web.schemas import Terms

PAYLOAD = "assetlock.dev/http-payload"
CORRELATION = "assetlock.dev/http-correlation"

ANSWERED_WITHIN = 10.0
"""Seconds that the operator has to decide on a lock that does not wait."""


async def lock(
    context: Context,
    caller: Caller,
    namespace: str,
    request: LockRequest,
    terms: Terms,
    key: str | None,
    prefer: str | None,
) -> Response:
    """The answer to a request for a lock; raises `Problem` where it was not granted."""
    payload = hashlib.sha256(
        json.dumps([request.body("", {}), namespace], sort_keys=True).encode()
    ).hexdigest()
    name = _name(caller, namespace, request, terms, key)
    annotations = {PAYLOAD: payload, **_correlation(terms)}
    lock, again = await _asked(caller, namespace, request, name, annotations, payload, by_key=key is not None)
    wait = parse_duration(terms.wait).total_seconds() if terms.wait else 0.0
    longest = preferred(prefer, context, context.settings.longest_wait_seconds)
    seconds = min(longest, wait + ANSWERED_WITHIN)
    lock = await locking.until_settled(caller.api, namespace, lock, seconds=seconds)
    if lock.status.state is LockState.HELD:
        if again and key is None:
            lock = await locking.renew(caller.api, namespace, name, ttl=terms.ttl)
        return shown(lock)
    if locking.is_settled(lock):
        raise await refusal(caller, namespace, lock)
    if wait:
        return accepted(lock)
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


def _correlation(terms: Terms) -> dict[str, str]:
    given = terms.model_dump(
        by_alias=True,
        exclude_none=True,
        include={"execution_id", "flow_id", "flow_namespace", "task_run_id"},
    )
    return {CORRELATION: json.dumps(given, sort_keys=True)} if given else {}
