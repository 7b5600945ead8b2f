"""Signs on the Asset: a holder's admitted write renews its Lease and is noted, and so is glass that was broken.

Done once the object shows the write, and at most once in a few seconds for each asset: however often somebody
writes, that costs a handful of requests, and those of many assets do not come all at once. Each is a compare-and-swap
on what was just read, so a lock that went to somebody else meanwhile is never renewed. A sign that can't be recorded
is let go; the next one counts.

While the API server takes longer than that allows, the locks closest to their end are renewed first, and who wrote
last is not noted; that extensions are delayed is said on each Asset once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from assetlock.admission.facts import lease_facts
from assetlock.admission.review import Object, Requester, annotations_of, mapping
from assetlock.core import names
from assetlock.core.fence import break_glass
from assetlock.core.identity import Identity
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, KubeError, NotFound
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES
from assetlock.model.asset import Asset, BrokenGlass
from assetlock.model.conditions import find_condition, set_condition
from assetlock.model.limits import LONGEST_USERNAME
from assetlock.model.times import format_micro_time, format_time

PAUSE = 5.0
MOST_WAITING = 10_000
MOST_KNOWN = 10_000
TRIES = 3

DELAYED = "ExtensionsDelayed"
"""The Asset's condition that its holder's writes extend the lock late, as too few requests get through."""

_NEVER = datetime.datetime.max.replace(tzinfo=datetime.UTC)

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Activity:
    """A write by a holder."""

    requester: Requester
    when: datetime.datetime


@dataclasses.dataclass(slots=True)
class _Noted:
    """What is to be recorded of one asset."""

    writes: dict[Identity, Activity] = dataclasses.field(default_factory=dict)
    broken: list[BrokenGlass] = dataclasses.field(default_factory=list)


class ActivityRecorder:
    """Takes signs from the request handlers and records them from one task."""

    def __init__(
        self,
        api: Api,
        *,
        pause: float = PAUSE,
        expires: Callable[[str, str], datetime.datetime | None] = lambda _namespace, _asset: None,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._api = api
        self._pause = pause
        self._expires = expires
        self._now = now
        self._behind = False
        self._extending: dict[str, bool] = {}
        self._waiting: dict[tuple[str, str], _Noted] = {}
        self._woken = asyncio.Event()

    def note_write(self, namespace: str, asset: str, requester: Requester) -> None:
        """Take note of a holder's write; its later one takes the place. Never waits, never fails."""
        noted = self._noted(namespace, asset)
        if noted is not None:
            writer = Identity(requester.username, requester.pod_uid, requester.credential_id)
            noted.writes.pop(writer, None)
            noted.writes[writer] = Activity(requester, self._now())

    def note_break_glass(self, namespace: str, asset: str, broken: BrokenGlass) -> None:
        """Take note of a write through the lock. Never waits, never fails."""
        noted = self._noted(namespace, asset)
        if noted is not None:
            noted.broken = break_glass.with_another(noted.broken, broken)

    def _noted(self, namespace: str, asset: str) -> _Noted | None:
        """Where to note something of the asset; ``None`` when too much waits already."""
        if (namespace, asset) not in self._waiting and len(self._waiting) >= MOST_WAITING:
            return None
        self._woken.set()
        return self._waiting.setdefault((namespace, asset), _Noted())

    async def run(self) -> NoReturn:
        """Record what was noted, first where a lock ends first, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._woken.wait()
            pace, began = self._pause / len(self._waiting), loop.time()
            namespace, asset = min(self._waiting, key=lambda key: self._expires(*key) or _NEVER)
            noted = self._waiting.pop((namespace, asset))
            if not self._waiting:
                self._woken.clear()
            await self._record(namespace, asset, noted)
            left = began + pace - loop.time()
            self._behind = left < 0
            await asyncio.sleep(max(0.0, left))

    async def _record(self, namespace: str, asset: str, noted: _Noted) -> None:
        """The Asset before the Leases: these set off the operator's own write of it, which would be in the way."""
        if not self._behind or noted.broken:
            await self._try(namespace, asset, self._mark(namespace, asset, noted))
        for activity in noted.writes.values():
            await self._try(namespace, asset, self._renew(namespace, asset, activity))
        if self._behind and not noted.broken:
            await self._try(namespace, asset, self._tell_of_delay(namespace, asset))

    async def _try(self, namespace: str, asset: str, step: Awaitable[None]) -> None:
        try:
            await step
        except KubeError as error:
            log.info("a write to asset %s/%s was not recorded: %s", namespace, asset, error)
        except Exception:
            log.exception("a write to asset %s/%s was not recorded", namespace, asset)

    async def _renew(self, namespace: str, asset: str, activity: Activity) -> None:
        """Renew what the requester holds there: of several Leases of one AssetLock the first renews all."""
        selector = f"{names.ASSET_LABEL}={asset}"
        leases = (await self._api.list(LEASES, namespace, label_selector=selector)).items
        done = set[str]()
        for lease in sorted(leases, key=lambda lease: names.slot_of(asset, lease["metadata"]["name"]) or 0):
            facts = lease_facts(lease)
            if not activity.requester.is_one_with(facts.owner) or facts.lock in done:
                continue
            if facts.lock is not None:
                done.add(facts.lock)
            await self._renew_one(namespace, lease, activity)

    async def _renew_one(self, namespace: str, lease: Object, activity: Activity) -> None:
        name = lease["metadata"]["name"]
        for _ in range(TRIES):
            try:
                facts = lease_facts(lease)
                if not facts.holder or not activity.requester.is_one_with(facts.owner):
                    return
                if facts.lock is not None and not await self._extends(namespace, lease, facts.lock):
                    return
                spec = {**mapping(lease.get("spec")), "renewTime": format_micro_time(self._now())}
                await self._api.replace(LEASES, namespace, name, {**lease, "spec": spec})
            except NotFound:
                return
            except Conflict:
                lease = await self._api.get(LEASES, namespace, name)
                continue
            return

    async def _extends(self, namespace: str, lease: Object, lock: str) -> bool:
        """Whether writes extend the AssetLock, which it says once and for all."""
        acquisition = annotations_of(lease).get(names.ACQUISITION_ANNOTATION, "")
        known = self._extending.get(acquisition)
        if known is None or not acquisition:
            spec = mapping((await self._api.get(ASSETLOCKS, namespace, lock)).get("spec"))
            known = spec.get("extendOnWrite") is not False and spec.get("mode") != "Maintenance"
            if len(self._extending) >= MOST_KNOWN:
                self._extending.clear()
            self._extending[acquisition] = known
        return known

    async def _tell_of_delay(self, namespace: str, asset: str) -> None:
        """Once: as long as it is said there, it costs one look."""
        present = Asset.model_validate(await self._api.get(ASSETS, namespace, asset))
        told = find_condition(present.status.conditions, DELAYED)
        if told is not None and told.status == "True":
            return
        message = (
            f"the API server lets too few requests through: {len(self._waiting)} more assets wait for their "
            "extension; the locks that end first are extended first"
        )
        await self._patch(present, {"conditions": self._conditions(present, "True", "Throttled", message)})

    def _conditions(self, asset: Asset, status: str, reason: str, message: str) -> list[Any]:
        told = set_condition(
            asset.status.conditions,
            DELAYED,
            status,
            reason,
            message,
            now=self._now().replace(microsecond=0),
            observed_generation=asset.metadata.generation,
        )
        return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in told]

    async def _patch(self, asset: Asset, status: dict[str, Any]) -> None:
        meta = asset.metadata
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "status": status}
        await self._api.merge_patch(ASSETS, meta.namespace or "", meta.name, patch, subresource="status")

    async def _mark(self, namespace: str, asset: str, noted: _Noted) -> None:
        for _ in range(TRIES):
            try:
                present = Asset.model_validate(await self._api.get(ASSETS, namespace, asset))
                status, told = _status(noted, present), find_condition(present.status.conditions, DELAYED)
                if not self._behind and told is not None and told.status == "True":
                    status["conditions"] = self._conditions(present, "False", "Prompt", "")
                await self._patch(present, status)
            except NotFound:
                return
            except Conflict:
                continue
            return


def _status(noted: _Noted, asset: Asset) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if noted.writes:
        last = list(noted.writes.values())[-1]
        status["lastPatchedBy"] = last.requester.username[:LONGEST_USERNAME]
        status["lastPatchTime"] = format_time(last.when)
    if noted.broken:
        shown = asset.status.broken_glass
        for broken in reversed(noted.broken):
            shown = break_glass.with_another(shown, broken)
        status["brokenGlass"] = [b.model_dump(mode="json", by_alias=True, exclude_none=True) for b in shown]
    return status
