"""Who reconciles: one process at a time, by a Lease in the operator's namespace.

The rules are client-go's: a record counts as alive until it was seen unchanged for its whole duration on this
process's own monotonic clock, so nobody's wall clock matters; a leader that could not renew in time stops being
one before another can begin, and then stands for election again; and it releases the Lease when it stops. While all
goes well a renewal is one request. This keeps work from being done twice; it is not what keeps locks safe: every
write of a reconciler is a compare-and-swap, and two of them at once do no harm.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from assetlock.controller.clock import Clock
from assetlock.controller.leader_process import LeaderProcess
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, KubeError, NotFound
from assetlock.kube.resources import LEASES
from assetlock.model.times import format_micro_time

LEADER_LEASE = "assetlock-controller"
PROCESS_ANNOTATION = f"{names.GROUP}/leader-process"
"""Which process leads, in words that only one beside it can check."""

TRIES = 3
"""After this share of the time that is left another try begins: an answer that never comes costs no leadership."""

SHORTEST_TRY = 0.2
JITTER = 1.2

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """How long the Lease lasts, for how long its leader tries to renew it, and how often: in seconds.

    Raises ValueError for times that don't fit together.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if self.duration != int(self.duration) or self.duration < 1:
            raise ValueError(f"the leader's Lease lasts whole seconds, at least one, not {self.duration}")
        if not 0 < self.retry * JITTER < self.renew_deadline < self.duration:
            raise ValueError(
                f"the leader's times don't fit: {JITTER} times the retry period ({self.retry} s) must be less than "
                f"the renew deadline ({self.renew_deadline} s), and that less than the Lease's duration "
                f"({self.duration} s)"
            )


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


def _always() -> bool:
    return True


def _nobody(_leads: bool) -> None:
    """Nobody listens."""


class Elector:
    """Stands for election for as long as it runs.

    ``fit`` says whether this process can do the work: while it can't, it neither stands nor renews. ``changed`` is
    called when it begins to lead, and when it no longer does. ``process`` lets one that comes after this one, on the
    same machine, see that it is gone.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        identity: str,
        *,
        timing: Timing = Timing(),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        namespace: str = names.OPERATOR_NAMESPACE,
        process: LeaderProcess | None = None,
        fit: Callable[[], bool] = _always,
        changed: Callable[[bool], None] = _nobody,
    ) -> None:
        self._api = api
        self._clock = clock
        self._identity = identity
        self._timing = timing
        self._sleep = sleep
        self._namespace = namespace
        self._process = process
        self._fit = fit
        self._changed = changed
        self._record: dict[str, Any] | None = None
        self._is_current = False
        self._seen_at = 0.0
        self._until: float | None = None

    @property
    def leads(self) -> bool:
        """Whether this process leads: its last renewal was less than the renew deadline ago."""
        return self._until is not None and self._clock.monotonic() < self._until

    async def run(self) -> NoReturn:
        """Stand, lead, and stand again, until cancelled."""
        while True:
            await self.acquire()
            await self.keep()
            if not self._fit():
                log.error("this process does not get on with its work: another may lead")
                await self.release()

    async def acquire(self) -> None:
        """Return once this process leads."""
        while not (self._fit() and await self._attempt(self._timing.renew_deadline)):
            await self._sleep(self._timing.retry)
        log.info("leading", extra={"identity": self._identity})
        self._changed(True)

    async def keep(self) -> None:
        """Renew, and return when that has failed for ``renew_deadline`` seconds, or somebody else leads."""
        await self._sleep(self._timing.retry)
        while self._fit() and await self._renew():
            await self._sleep(self._until_next())
        self._until = None
        log.warning("no longer leading", extra={"identity": self._identity})
        self._changed(False)

    async def release(self) -> None:
        """Let the next one begin at once."""
        if self._until is not None:
            self._until = None
            self._changed(False)
        try:
            if not self._is_current:
                await self._read()
            if self._record is not None and self._mine(self._record):
                spec = {**self._record["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                body = {**self._record, "spec": spec}
                self._is_current = False
                await self._api.replace(LEASES, self._namespace, LEADER_LEASE, body)
        except KubeError as error:
            log.warning("leadership not released", extra={"why": str(error)})

    def _until_next(self) -> float:
        """Counted from when the last renewal was sent, since its answer may have been late."""
        since = self._clock.monotonic() - (self._until or 0.0) + self._timing.renew_deadline
        return max(0.0, self._timing.retry - since)

    async def _renew(self) -> bool:
        """Try until it is done; false when the deadline is over, or somebody else holds the Lease.

        A try that has no answer yet goes on beside the next one: the answer may only be late.
        """
        tries = set[asyncio.Task[bool]]()
        try:
            while (left := (self._until or 0.0) - self._clock.monotonic()) > 0:
                share = max(left / TRIES, SHORTEST_TRY)
                tries.add(asyncio.create_task(self._attempt(left)))
                done, tries = await asyncio.wait(tries, timeout=share, return_when=asyncio.FIRST_COMPLETED)
                if any(each.result() for each in done):
                    return True
                if self._is_current and self._record is not None and not self._mine(self._record):
                    return False
                if done:
                    await self._sleep(min(self._timing.retry, share))
            return False
        finally:
            for each in tries:
                each.cancel()
            await asyncio.gather(*tries, return_exceptions=True)

    async def _attempt(self, seconds: float) -> bool:
        """Whether this process leads from now on; what has no answer in time is read again before the next try."""
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(seconds):
                leads = await self._try()
        except (TimeoutError, KubeError) as error:
            self._is_current = False
            why = str(error) or f"no answer in {seconds:.1f} s"
            log.warning("leader Lease not written", extra={"why": why})
            return False
        if leads:
            self._until = began + self._timing.renew_deadline
        return leads

    async def _try(self) -> bool:
        if self._is_current and self._record is not None and self._mine(self._record):
            try:
                await self._write(self._record)
            except Conflict:
                self._is_current = False
            else:
                return True
        record = await self._read()
        if record is not None and not self._mine(record) and not self._over(record):
            return False
        await self._write(record)
        return True

    async def _read(self) -> dict[str, Any] | None:
        try:
            record = await self._api.get(LEASES, self._namespace, LEADER_LEASE)
        except NotFound:
            self._record, self._is_current = None, True
            return None
        self._observe(record)
        return record

    async def _write(self, record: dict[str, Any] | None) -> None:
        """Take or renew the Lease in place of this version of it; without an answer nobody knows what it is then."""
        self._is_current = False
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
        meta: dict[str, Any] = (
            record["metadata"] if record else {"name": LEADER_LEASE, "namespace": self._namespace}
        )
        if self._process is not None:
            told = {PROCESS_ANNOTATION: f"{self._identity} {self._process}"}
            meta = {**meta, "annotations": {**meta.get("annotations", {}), **told}}
        if record is not None:
            body = {**record, "metadata": meta, "spec": spec}
            self._observe(await self._api.replace(LEASES, self._namespace, LEADER_LEASE, body))
            return
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": spec}
        self._observe(await self._api.create(LEASES, self._namespace, body))

    def _observe(self, record: dict[str, Any]) -> None:
        known = self._record["metadata"]["resourceVersion"] if self._record else None
        if record["metadata"]["resourceVersion"] != known:
            self._seen_at = self._clock.monotonic()
        self._record, self._is_current = record, True

    def _mine(self, record: dict[str, Any]) -> bool:
        return bool(record["spec"].get("holderIdentity") == self._identity)

    def _over(self, record: dict[str, Any]) -> bool:
        holder = record["spec"].get("holderIdentity")
        if not holder or self._is_gone(record, holder):
            return True
        duration = record["spec"].get("leaseDurationSeconds", self._timing.duration)
        return self._clock.monotonic() > self._seen_at + float(duration)

    def _is_gone(self, record: dict[str, Any], holder: str) -> bool:
        """Whether it is certain that the process that holds the Lease has ended."""
        annotations = record["metadata"].get("annotations") or {}
        identity, _, process = annotations.get(PROCESS_ANNOTATION, "").partition(" ")
        return self._process is not None and identity == holder and self._process.knows_gone(process)
