"""Signs of life: a holder's admitted write renews its Lease and is noted on the Asset.

Done after the write was answered, and at most once in a few seconds for each asset: however often a holder
writes, that costs a handful of requests. Each is a compare-and-swap on what was just read, so a lock that went
to somebody else meanwhile is never renewed. A sign that can't be recorded is let go; the next one counts.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
from collections.abc import Callable
from typing import Any, NoReturn

from assetlock.admission.facts import lease_facts
from assetlock.admission.review import Requester, mapping
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, KubeError, NotFound
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES
from assetlock.model.times import format_micro_time, format_time

PAUSE = 5.0
MOST_WAITING = 10_000
TRIES = 3

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Sign:
    """A write by a holder."""

    requester: Requester
    when: datetime.datetime


class SignRecorder:
    """Takes signs from the request handlers and records them from one task."""

    def __init__(
        self,
        api: Api,
        *,
        pause: float = PAUSE,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._api = api
        self._pause = pause
        self._now = now
        self._waiting: dict[tuple[str, str], Sign] = {}
        self._woken = asyncio.Event()

    def note(self, namespace: str, asset: str, requester: Requester) -> None:
        """Take note of a write; a later one takes its place. Never waits, never fails."""
        if (namespace, asset) in self._waiting or len(self._waiting) < MOST_WAITING:
            self._waiting[namespace, asset] = Sign(requester, self._now())
            self._woken.set()

    async def run(self) -> NoReturn:
        """Record what was noted, until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            taken, self._waiting = self._waiting, {}
            for (namespace, asset), sign in taken.items():
                try:
                    await self._renew(namespace, asset, sign)
                    await self._mark(namespace, asset, sign)
                except KubeError as error:
                    log.info("a write to asset %s/%s was not recorded: %s", namespace, asset, error)
                except Exception:
                    log.exception("a write to asset %s/%s was not recorded", namespace, asset)
            await asyncio.sleep(self._pause)

    async def _renew(self, namespace: str, asset: str, sign: Sign) -> None:
        name = names.lease_name(asset)
        for _ in range(TRIES):
            try:
                lease = await self._api.get(LEASES, namespace, name)
                facts = lease_facts(lease)
                if not facts.holder or not sign.requester.is_one_with(facts.owner):
                    return
                if facts.lock is not None and not await self._extends(namespace, facts.lock):
                    return
                spec = {**mapping(lease.get("spec")), "renewTime": format_micro_time(self._now())}
                await self._api.replace(LEASES, namespace, name, {**lease, "spec": spec})
            except NotFound:
                return
            except Conflict:
                continue
            return

    async def _extends(self, namespace: str, lock: str) -> bool:
        spec = mapping((await self._api.get(ASSETLOCKS, namespace, lock)).get("spec"))
        return spec.get("extendOnWrite") is not False

    async def _mark(self, namespace: str, asset: str, sign: Sign) -> None:
        for _ in range(TRIES):
            try:
                present = await self._api.get(ASSETS, namespace, asset)
                patch: dict[str, Any] = {
                    "metadata": {"resourceVersion": present["metadata"]["resourceVersion"]},
                    "status": {
                        "lastPatchedBy": sign.requester.username,
                        "lastPatchTime": format_time(sign.when),
                    },
                }
                await self._api.merge_patch(ASSETS, namespace, asset, patch, subresource="status")
            except NotFound:
                return
            except Conflict:
                continue
            return
