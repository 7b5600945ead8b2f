"""Who reconciles: one process at a time, by a Lease in the operator's namespace.

The rules are client-go's: a record counts as alive until it was seen unchanged for its whole duration on this
process's own monotonic clock, so nobody's wall clock matters; a leader that could not renew in time stops being
one before another can begin; and it lets go when it stops. This keeps work from being done twice; it is not what
keeps locks safe: every write of a reconciler is a compare-and-swap, and two of them at once do no harm.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from assetlock.controller.clock import Clock
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import KubeError, NotFound
from assetlock.kube.resources import LEASES
from assetlock.model.times import format_micro_time

LEADER_LEASE = "assetlock-controller"

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. Short, so that a restarted operator grants again within five seconds of a crash."""

    duration: float = 3.0
    renew_deadline: float = 2.0
    retry: float = 0.5


class LeadershipLost(Exception):
    """This process could not renew its Lease in time; it must stop acting at once."""


async def present_leader(
    api: Api,
    clock: Clock,
    *,
    timing: Timing = Timing(),
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    namespace: str = names.OPERATOR_NAMESPACE,
) -> str | None:
    """Who leads, as far as its Lease is renewed while this looks on, which takes as long as a term of it.

    ``None`` when nobody does. Raises KubeError when the Lease can't be read.
    """
    seen: str | None = None
    began = clock.monotonic()
    while True:
        try:
            record = await api.get(LEASES, namespace, LEADER_LEASE)
        except NotFound:
            return None
        leader, version = record["spec"].get("holderIdentity"), record["metadata"]["resourceVersion"]
        if not leader or (seen is not None and version != seen):
            return leader or None
        if clock.monotonic() - began > record["spec"].get("leaseDurationSeconds", timing.duration):
            return None
        seen = version
        await sleep(timing.retry)


class Elector:
    """Stands for election, and tells whether this process leads."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        identity: str,
        *,
        timing: Timing = Timing(),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        namespace: str = names.OPERATOR_NAMESPACE,
    ) -> None:
        self._api = api
        self._clock = clock
        self._identity = identity
        self._timing = timing
        self._sleep = sleep
        self._namespace = namespace
        self._record: dict[str, Any] | None = None
        self._seen_at = 0.0
        self.leading = asyncio.Event()

    async def acquire(self) -> None:
        """Return once this process leads."""
        while not await self._try():
            await self._sleep(self._timing.retry)
        self.leading.set()
        log.info("leading", extra={"identity": self._identity})

    async def keep(self) -> None:
        """Renew for ever. Raises LeadershipLost when that failed for ``renew_deadline`` seconds."""
        renewed = self._clock.monotonic()
        while True:
            await self._sleep(self._timing.retry)
            if self._clock.monotonic() - renewed > self._timing.duration:
                break
            deadline = renewed + self._timing.renew_deadline
            try:
                async with asyncio.timeout(deadline - self._clock.monotonic()):
                    if await self._try():
                        renewed = self._clock.monotonic()
                        continue
            except TimeoutError:
                break
            if self._clock.monotonic() > deadline:
                break
        self.leading.clear()
        raise LeadershipLost(f"{self._identity} could not renew {LEADER_LEASE}")

    async def release(self) -> None:
        """Let the next one begin at once."""
        self.leading.clear()
        record = self._record
        if record is None or record["spec"].get("holderIdentity") != self._identity:
            return
        spec = {**record["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self._api.replace(LEASES, self._namespace, LEADER_LEASE, {**record, "spec": spec})
        except KubeError as error:
            log.warning("leadership not released", extra={"why": str(error)})

    async def _try(self) -> bool:
        try:
            record = await self._api.get(LEASES, self._namespace, LEADER_LEASE)
        except NotFound:
            record = None
        except KubeError as error:
            log.warning("leader Lease not read", extra={"why": str(error)})
            return False
        if record is not None:
            self._observe(record)
            if not self._mine(record) and not self._over(record):
                return False
        try:
            self._observe(await self._write(record))
        except KubeError as error:
            log.info("leader Lease not taken", extra={"why": str(error)})
            return False
        return True

    async def _write(self, record: dict[str, Any] | None) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        old = record["spec"] if record else {}
        mine = record is not None and self._mine(record)
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._timing.duration),
            "acquireTime": old.get("acquireTime", now) if mine else now,
            "renewTime": now,
            "leaseTransitions": old.get("leaseTransitions", 0) + (0 if mine else 1) if record else 0,
        }
        if record is not None:
            body = {**record, "spec": spec}
            return await self._api.replace(LEASES, self._namespace, LEADER_LEASE, body)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEADER_LEASE, "namespace": self._namespace},
            "spec": spec,
        }
        return await self._api.create(LEASES, self._namespace, body)

    def _observe(self, record: dict[str, Any]) -> None:
        known = self._record["metadata"]["resourceVersion"] if self._record else None
        if record["metadata"]["resourceVersion"] != known:
            self._seen_at = self._clock.monotonic()
        self._record = record

    def _mine(self, record: dict[str, Any]) -> bool:
        return bool(record["spec"].get("holderIdentity") == self._identity)

    def _over(self, record: dict[str, Any]) -> bool:
        if not record["spec"].get("holderIdentity"):
            return True
        duration = record["spec"].get("leaseDurationSeconds", self._timing.duration)
        return self._clock.monotonic() > self._seen_at + float(duration)
