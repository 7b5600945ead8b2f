"""One client of a cluster for measuring: makes assets and locks, and sees statuses change by a single watch."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict
from assetlock.kube.resources import ASSETLOCKS, ASSETS, CONFIG_MAPS, LEASES

NAMESPACE = "bench"
_numbers = itertools.count()


class Bench:
    """Everything that is measured goes through here, so that both sides of a ratio pay for the same client."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._acquired: dict[str, asyncio.Future[float]] = defaultdict(
            asyncio.get_running_loop().create_future
        )
        self._seen: dict[str, dict[str, Any]] = {}

    async def watch(self) -> None:
        """Note when each AssetLock is seen to be acquired; runs until cancelled."""
        listed = await self.api.list(ASSETLOCKS, NAMESPACE)
        for lock in listed.items:
            self._see(lock)
        version = listed.resource_version
        while True:
            async for event in self.api.watch(ASSETLOCKS, NAMESPACE, resource_version=version):
                version = event.object["metadata"]["resourceVersion"]
                if event.type != "BOOKMARK":
                    self._see(event.object)

    def _see(self, lock: dict[str, Any]) -> None:
        name = lock["metadata"]["name"]
        self._seen[name] = lock["metadata"]
        future = self._acquired[name]
        if lock.get("status", {}).get("state") == "Held" and not future.done():
            future.set_result(time.perf_counter())

    async def acquired(self, name: str, *, within: float = 120.0) -> float:
        """When the lock was seen to be acquired."""
        async with asyncio.timeout(within):
            return await self._acquired[name]

    async def next_acquired(self, names: Collection[str], *, within: float = 120.0) -> tuple[str, float]:
        """Which of these locks is acquired first, and when that was seen."""
        waiting = {self._acquired[name]: name for name in names}
        done, _ = await asyncio.wait(waiting, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise TimeoutError(f"none of {len(names)} locks was acquired within {within} s")
        first = done.pop()
        return waiting[first], first.result()

    async def make_asset(self, name: str, *more: str) -> None:
        """An asset with a ConfigMap of its name as its target, and further ones."""
        for target in (name, *more):
            await self.make_configmap(target)
        targets = [{"apiVersion": "v1", "kind": "ConfigMap", "name": target} for target in (name, *more)]
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"type": "Bench", "targets": targets},
        }
        await self.api.create(ASSETS, NAMESPACE, {"apiVersion": ASSETS.api_version, "kind": "Asset", **body})

    async def make_configmap(self, name: str) -> None:
        """Something to write to."""
        body = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"value": "0"}}
        await self.api.create(CONFIG_MAPS, NAMESPACE, {"apiVersion": "v1", "kind": "ConfigMap", **body})

    async def ask(self, asset: str, *, wait: str = "0s", priority: int = 0, **spec: Any) -> dict[str, Any]:
        """Create an AssetLock."""
        name = f"{asset}-{next(_numbers)}"
        body = {
            "apiVersion": ASSETLOCKS.api_version,
            "kind": "AssetLock",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"assetName": asset, "ttl": "10m", "wait": wait, "priority": priority, **spec},
        }
        return await self.api.create(ASSETLOCKS, NAMESPACE, body)

    async def release(self, name: str) -> None:
        """Delete an AssetLock in the version last seen, as raw Leases are, or in whatever version it is by now."""
        meta = self._seen[name]
        while True:
            with contextlib.suppress(Conflict):
                await self.api.delete(
                    ASSETLOCKS, NAMESPACE, name, uid=meta["uid"], resource_version=meta["resourceVersion"]
                )
                return
            meta = (await self.api.get(ASSETLOCKS, NAMESPACE, name))["metadata"]

    async def raw_lease(self) -> tuple[float, float]:
        """Create and delete a plain Lease; gives the milliseconds of each."""
        name = f"raw-{next(_numbers)}"
        body = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"holderIdentity": "bench", "leaseDurationSeconds": 60},
        }
        began = time.perf_counter()
        meta = (await self.api.create(LEASES, NAMESPACE, body))["metadata"]
        created = time.perf_counter()
        await self.api.delete(
            LEASES, NAMESPACE, name, uid=meta["uid"], resource_version=meta["resourceVersion"]
        )
        return (created - began) * 1000, (time.perf_counter() - created) * 1000

    async def patch(self, name: str) -> float:
        """Change a ConfigMap's content; gives the milliseconds."""
        version = (await self.api.get(CONFIG_MAPS, NAMESPACE, name))["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "data": {"value": str(next(_numbers))}}
        began = time.perf_counter()
        await self.api.merge_patch(CONFIG_MAPS, NAMESPACE, name, patch)
        return (time.perf_counter() - began) * 1000
