"""Locks that another process has acquired, by the name of their AssetLock: what scripts do between their commands."""

from __future__ import annotations

import datetime
import os
import time
from dataclasses import dataclass

from assetlock.client.api import ASSETLOCKS, ASSETS, Api, Conflict, NotFound, Object
from assetlock.client.session.locks import PATIENCE, TERMINAL, condition_of
from assetlock.client.session.requests import LOST, Lost, NobodyAnswers, NoSuchLock, NotAcquired

_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a lock that was to be released."""

    message: str
    exit_code: int = os.EX_OK


def release_named(api: Api, namespace: str, name: str) -> Ended:
    """Delete the AssetLock. `NoSuchLock` if the name is that of an asset."""
    path = ASSETLOCKS.path(namespace, name)
    try:
        seen = api.get(path)
        api.delete(path, uid=seen["metadata"]["uid"])
    except (NotFound, Conflict):
        _refuse_asset(api, namespace, name)
        return Ended(f"lock {name} was gone already")
    state = seen.get("status", {}).get("state")
    if state in TERMINAL:
        return Ended(f"lock {name} was lost before: {_how(seen)}", LOST)
    return Ended(f"released {name}")


def extend_named(api: Api, namespace: str, name: str, ttl: str | None) -> str:
    """Renew the AssetLock, if a ttl is given with that from now on, and give the time at which it expires then.

    Raises `Lost` if it has ended, `NobodyAnswers` if the operator does not take note.
    """
    path = ASSETLOCKS.path(namespace, name)
    try:
        seen = api.get(path)
    except NotFound as error:
        _refuse_asset(api, namespace, name)
        raise Lost(f"there is no lock {name} in namespace {namespace}") from error
    _require_life(seen)
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    spec = {"renewTime": f"{now.isoformat(timespec='microseconds')}Z", **({"ttl": ttl} if ttl else {})}
    changed = api.patch(path, {"metadata": {"uid": seen["metadata"]["uid"]}, "spec": spec})
    deadline = time.monotonic() + PATIENCE
    while int(changed.get("status", {}).get("observedGeneration", 0)) < changed["metadata"]["generation"]:
        if time.monotonic() > deadline:
            raise NobodyAnswers("no operator takes note of it: its controller does not run, or does not lead")
        time.sleep(_PAUSE)
        changed = api.get(path)
    _require_life(changed)
    if changed["status"].get("state") != "Held":
        raise NotAcquired(f"lock {name} is not held yet: it waits", "Pending")
    return str(changed["status"]["expireTime"])


def _require_life(seen: Object) -> None:
    if seen.get("status", {}).get("state") in TERMINAL:
        raise Lost(f"lock {seen['metadata']['name']} has ended: {_how(seen)}")


def _how(seen: Object) -> str:
    message = condition_of(seen.get("status", {}), "Settled").get("message", "")
    return f"{seen['status']['state']}{f', {message}' if message else ''}"


def _refuse_asset(api: Api, namespace: str, name: str) -> None:
    try:
        api.get(ASSETS.path(namespace, name))
    except NotFound:
        return
    raise NoSuchLock(f"{name} is an asset, not a lock: give the name that acquire has printed")
