"""Ask for a lock, wait for it, renew it and release it: always this very AssetLock, never the caller's other ones."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, Gone, KubeError, NotFound, OutcomeUnknown, TransportError
from assetlock.kube.resources import ASSETLOCKS
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.conditions import find_condition
from assetlock.model.times import format_micro_time

TRIES = 10
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


class LockLost(Exception):
    """The lock has ended, or is gone: it can't be renewed."""

    def __init__(self, name: str, lock: AssetLock | None) -> None:
        state = lock.status.state if lock is not None else None
        settled = find_condition(lock.status.conditions, "Acquired") if lock is not None else None
        why = f" ({settled.message})" if settled is not None and settled.message else ""
        super().__init__(f"lock {name} {f'is {state}' if state else 'does not exist any more'}{why}")
        self.lock = lock


@dataclasses.dataclass(frozen=True, slots=True)
class LockRequest:
    """What is asked for: one asset, several, or any that a selector selects.

    ``spec`` has the other fields of an AssetLock's spec, as its API writes them.
    """

    assets: Sequence[str] = ()
    selector: Mapping[str, Any] | None = None
    count: int | None = None
    spec: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def body(self, name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
        """The AssetLock to create."""
        spec: dict[str, Any] = dict(self.spec)
        if self.selector is not None:
            spec |= {"assetSelector": dict(self.selector), "count": self.count or 1}
        elif len(self.assets) == 1:
            spec["assetName"] = self.assets[0]
        else:
            spec["assetNames"] = list(self.assets)
        metadata: dict[str, Any] = {"name": name}
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {
            "apiVersion": ASSETLOCKS.api_version,
            "kind": ASSETLOCKS.kind,
            "metadata": metadata,
            "spec": spec,
        }


async def ask(
    api: Api,
    namespace: str,
    request: LockRequest,
    *,
    name: str,
    annotations: Mapping[str, str] | None = None,
) -> AssetLock:
    """Create the AssetLock. The caller chose its name, so that a lost answer can be told from a refusal.

    Raises `AlreadyExists` if there is one of that name, `Forbidden` without the verb ``lock``, `Invalid` for what
    the API does not take.
    """
    body = request.body(name, annotations or {})
    try:
        return AssetLock.model_validate(await api.create(ASSETLOCKS, namespace, body))
    except OutcomeUnknown:
        # Nobody else uses this name: if the object is there, it is the one that was sent.
        with contextlib.suppress(NotFound):
            return await read(api, namespace, name)
        raise


async def read(api: Api, namespace: str, name: str) -> AssetLock:
    """The lock as it is now; raises `NotFound`."""
    return AssetLock.model_validate(await api.get(ASSETLOCKS, namespace, name))


def is_settled(lock: AssetLock) -> bool:
    """Whether it was decided on: it is held, or has ended."""
    state = lock.status.state
    return state is not None and state is not LockState.PENDING


async def until_settled(
    api: Api,
    namespace: str,
    lock: AssetLock,
    *,
    seconds: float,
) -> AssetLock:
    """The lock once it is settled, or as it is when the time is up; `NotFound` when it is deleted meanwhile."""
    name = lock.metadata.name
    deadline = asyncio.get_running_loop().time() + seconds
    pause = FIRST_PAUSE
    while not is_settled(lock):
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return lock
        try:
            async with asyncio.timeout(left):
                lock = await _next_state(api, namespace, lock)
            continue
        except TimeoutError:
            return await read(api, namespace, name)
        except (Gone, TransportError):
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE)
        lock = await read(api, namespace, name)
    return lock


async def _next_state(api: Api, namespace: str, lock: AssetLock) -> AssetLock:
    """The lock after its next change; raises `NotFound` when it is deleted, `Gone` when the watch must start over."""
    name = lock.metadata.name
    events = api.watch(
        ASSETLOCKS,
        namespace,
        resource_version=lock.metadata.resource_version,
        field_selector=f"metadata.name={name}",
    )
    async with contextlib.aclosing(events):
        async for event in events:
            if event.type == "DELETED":
                raise NotFound(404, "NotFound", f"AssetLock {name} was deleted while it waited")
            if event.type != "BOOKMARK":
                return AssetLock.model_validate(event.object)
    raise Gone(410, "Expired", "the watch ended")


async def renew(api: Api, namespace: str, name: str, *, ttl: str | None = None) -> AssetLock:
    """Begin the lock's term again, with another length if one is given.

    Raises `LockLost` when it has ended or is gone, `Forbidden` for others' locks.
    """
    for _ in range(TRIES):
        try:
            present = await api.get(ASSETLOCKS, namespace, name)
            lock = AssetLock.model_validate(present)
            if lock.status.state is not None and lock.status.state.terminal:
                raise LockLost(name, lock)
            patch = {
                "metadata": {"uid": lock.metadata.uid, "resourceVersion": lock.metadata.resource_version},
                "spec": _term(lock, ttl),
            }
            return AssetLock.model_validate(await api.merge_patch(ASSETLOCKS, namespace, name, patch))
        except NotFound as error:
            raise LockLost(name, None) from error
        except (Conflict, OutcomeUnknown):
            continue
    raise KubeError(f"AssetLock {name} changes all the time; try again")


def _term(lock: AssetLock, ttl: str | None) -> dict[str, Any]:
    """The change that begins the term again. The time only has to be another one: the server's own counts."""
    spec: dict[str, Any] = {"renewTime": format_micro_time(datetime.datetime.now(datetime.UTC))}
    return {**spec, "ttl": ttl} if ttl is not None and ttl != lock.spec.ttl else spec


async def release(api: Api, namespace: str, name: str, *, uid: str | None = None) -> bool:
    """Delete this AssetLock, if it is still there; whether it was.

    ``uid``: only if it is still that very one. Raises `Forbidden` for others' locks.
    """
    done = False
    for _ in range(TRIES):
        try:
            meta = (await api.get(ASSETLOCKS, namespace, name))["metadata"]
            if uid is not None and meta["uid"] != uid:
                return done
            version = meta["resourceVersion"]
            await api.delete(ASSETLOCKS, namespace, name, uid=meta["uid"], resource_version=version)
        except NotFound:
            return done
        except OutcomeUnknown:
            done = True
        except Conflict:
            continue
        else:
            return True
    raise KubeError(f"AssetLock {name} changes all the time; try again")
