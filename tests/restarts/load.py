"""Those who want the assets: locks of every mode, that wait or do not; Leases made by hand; pods that end.

Each lives one life after another, in an order that its seed says. What an API server without our webhooks refuses is
asked for again; nobody looks back at what was left behind, as the operator must see to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from assetlock.core import names
from assetlock.kube.resources import ASSETLOCKS, LEASES, PODS
from tests.chaos.clients import NAMESPACE, AnswerLost, NotSent, Person
from tests.restarts.board import TERMINAL, Board

CAPACITIES = {"vm-1": 1, "vm-2": 2, "vm-3": 3}
TTL = 3
WAITS = ("0s", "1s", "8s", "1h")
LONGEST_LOOK = 20.0
_USER = f"system:serviceaccount:{NAMESPACE}:default"
_HERE = {"apiVersion": "v1", "kind": "Pod"}


class Client:
    """One of them, a user of its own."""

    def __init__(self, someone: Person, board: Board, asset: str, seed: str) -> None:
        self._someone = someone
        self._board = board
        self._asset = asset
        self._random = random.Random(f"{seed}/{someone.name}")
        self._numbers = itertools.count(1)

    async def run(self) -> None:
        """Live until cancelled."""
        lives: list[Callable[[], Awaitable[None]]] = [
            self._lock,
            self._lock,
            self._lease,
            self._lease,
            self._pod,
        ]
        while True:
            with contextlib.suppress(AnswerLost, NotSent):
                await self._random.choice(lives)()
            await asyncio.sleep(self._random.uniform(0.05, 0.6))

    async def _lock(self) -> None:
        """Ask; perhaps withdraw while in line; hold, and release or just go away."""
        mode = self._random.choices(["Exclusive", "Shared", "Maintenance"], [4, 5, 1])[0]
        name = await self._ask(mode=mode, priority=self._random.randint(-1, 1))
        if self._random.random() < 0.2:
            await asyncio.sleep(self._random.uniform(0, 1.5))
            await self._delete(ASSETLOCKS.path(NAMESPACE, name))
        elif await self._held(name):
            await asyncio.sleep(self._random.uniform(0, 1))
            if self._random.random() < 0.6:
                await self._delete(ASSETLOCKS.path(NAMESPACE, name))

    async def _lease(self) -> None:
        """Take a slot by hand; renew; release in one of two ways, or just go away."""
        name = names.lease_name(self._asset, self._random.randrange(CAPACITIES[self._asset]))
        who = f"{self._someone.name}-{next(self._numbers)}"
        body = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"name": name, "labels": {names.ASSET_LABEL: self._asset}},
            "spec": {"holderIdentity": who, "leaseDurationSeconds": TTL},
        }
        if (await self._someone.send("POST", LEASES.path(NAMESPACE), body)).status != 201:
            return
        for _ in range(self._random.randint(0, 3)):
            await asyncio.sleep(self._random.uniform(0.2, 1))
            if not await self._change(name, who, {"renewTime": "2000-01-01T00:00:00.000000Z"}):
                return
        ending = self._random.random()
        if ending < 0.3:
            await self._change(name, who, {"holderIdentity": ""})
        elif ending < 0.6 and (lease := await self._own(name, who)):
            meta = lease["metadata"]
            only = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
            await self._someone.send("DELETE", LEASES.path(NAMESPACE, name), {"preconditions": only})

    async def _pod(self) -> None:
        """A lock that a pod holds, and that ends with it in one of three ways."""
        name = f"{self._someone.name}-pod-{next(self._numbers)}"
        spec = {"containers": [{"name": "c", "image": "none"}]}
        pod = {**_HERE, "metadata": {"name": name}, "spec": spec}
        made = await self._someone.send("POST", PODS.path(NAMESPACE), pod)
        if made.status != 201:
            return
        holder = {"username": _USER, "podName": name, "podUID": json.loads(made.body)["metadata"]["uid"]}
        lock = await self._ask(holder=holder, bindTo="Pod", mode=self._random.choice(["Exclusive", "Shared"]))
        if self._random.random() < 0.7:
            await self._held(lock)
        if self._random.random() < 0.5:
            await self._delete(PODS.path(NAMESPACE, name), {"gracePeriodSeconds": 0})
        else:
            ended = {"status": {"phase": self._random.choice(["Succeeded", "Failed"])}}
            await self._someone.send("PATCH", f"{PODS.path(NAMESPACE, name)}/status", ended)

    async def _ask(self, **spec: Any) -> str:
        """An AssetLock. Raises NotSent where the webhook that names its holder does not answer."""
        name = f"{self._someone.name}-{next(self._numbers)}"
        wait = self._random.choice(WAITS)
        body = {
            "apiVersion": ASSETLOCKS.api_version,
            "kind": "AssetLock",
            "metadata": {"name": name},
            "spec": {"assetName": self._asset, "ttl": f"{TTL}s", "wait": wait, **spec},
        }
        if (await self._someone.send("POST", ASSETLOCKS.path(NAMESPACE), body)).status != 201:
            raise NotSent
        return name

    async def _held(self, name: str) -> bool:
        """Whether it comes to be held, as long as somebody cares to look."""
        settled = {*TERMINAL, "Held", "Gone"}
        await self._board.until(
            lambda: name in self._board.locks and self._board.state(name) in settled, LONGEST_LOOK
        )
        return self._board.state(name) == "Held"

    async def _own(self, name: str, who: str) -> dict[str, Any] | None:
        """The Lease, if it is still ours."""
        found = await self._someone.send("GET", LEASES.path(NAMESPACE, name))
        lease: dict[str, Any] = json.loads(found.body)
        return lease if lease.get("spec", {}).get("holderIdentity") == who else None

    async def _change(self, name: str, who: str, spec: dict[str, Any]) -> bool:
        if (lease := await self._own(name, who)) is None:
            return False
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        path = LEASES.path(NAMESPACE, name)
        await self._someone.send("PATCH", path, {"metadata": version, "spec": spec})
        return True

    async def _delete(self, path: str, options: dict[str, Any] | None = None) -> None:
        await self._someone.send("DELETE", path, options)
