"""Those who want locks: well-behaved, forgetful, impatient; and those who write whether they hold one or not."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from assetlock.core import names
from assetlock.kube.resources import ASSETLOCKS, ASSETS, CONFIG_MAPS, LEASES
from assetlock.kube.transport import Reply, TransportError
from tests.sim import records
from tests.sim.admission import User
from tests.sim.client import Client
from tests.sim.plan import Plan
from tests.sim.policies import SUPERUSER
from tests.sim.store import Change, Key, Store
from tests.sim.world import Process, World

NAMESPACE = "team-a"
_HEADERS = {"accept": "application/json", "content-type": "application/json"}
MERGE = {**_HEADERS, "content-type": "application/merge-patch+json"}


async def send(
    client: Client, method: str, path: str, body: Any = None, headers: dict[str, str] = _HEADERS
) -> Reply | None:
    """One request; None when it is not known what became of it."""
    data = None if body is None else json.dumps(body).encode()
    try:
        return await client.request(method, path, params={}, headers=headers, body=data, timeout=10)
    except TransportError:
        if client.crashed:
            raise
        return None


class Board:
    """What clients look at instead of polling: the store itself, and a call whenever it changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        store.on_commit.append(self._look)

    def get(self, plural: str, name: str) -> dict[str, Any] | None:
        """An object as it is now."""
        group = {"leases": "coordination.k8s.io", "configmaps": ""}.get(plural, "assetlock.dev")
        version = self._store.get(Key(group, plural, NAMESPACE, name))
        return version.obj if version else None

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for something to become true, but not longer than that."""
        if condition():
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            del self._waiting[future]
        return True

    def _look(self, _change: Change) -> None:
        for future, condition in self._waiting.items():
            if not future.done() and condition():
                future.set_result(None)


class Locker:
    """Asks for AssetLocks, one after the other; if `joint`, for several assets at once now and then."""

    def __init__(
        self,
        board: Board,
        admission: Client,
        rng: random.Random,
        assets: list[str],
        plan: Plan,
        until: float,
        twisted: Callable[[random.Random, Board, str], dict[str, Any]],
    ) -> None:
        self._twisted = twisted
        self._joint = plan.joint
        self._board = board
        self._slots = plan.capacity
        self._pace = plan.pace
        self._admission = admission
        self._random = rng
        self._assets = assets
        self._until = until

    async def run(self, process: Process) -> None:
        """Until it is time to stop."""
        loop = asyncio.get_running_loop()
        number = 0
        while loop.time() < self._until:
            await asyncio.sleep(self._random.expovariate(1.0) * self._pace)
            number += 1
            await self._one(process, f"{process.name}-{number}")

    async def _one(self, process: Process, name: str) -> None:
        rng = self._random
        named, chosen = self._choose()
        spec: dict[str, Any] = {
            **named,
            "ttl": rng.choice(["1s", "2s", "5s", "PT8S"] if self._pace == 1 else ["1s", "1s", "2s", "PT3S"]),
            "wait": rng.choice(["0s", "1s", "4s", "12s", "12s"]),
            "priority": rng.choice([0, 0, 0, 1, 2]),
            **(self._twisted(rng, self._board, chosen[0]) if len(chosen) == 1 else {}),
        }
        if rng.random() < 0.3:
            spec["ttlSecondsAfterFinished"] = rng.choice([0, 2])
        if self._slots > 1 and rng.random() < 0.6:
            spec["mode"] = "Shared"
        lock = {
            "apiVersion": "assetlock.dev/v1alpha1",
            "kind": "AssetLock",
            "metadata": {"name": name},
            "spec": spec,
        }
        reply = await send(process.client, "POST", ASSETLOCKS.path(NAMESPACE), lock)
        if reply is not None and reply.status == 500:
            return
        if rng.random() < 0.1:
            await asyncio.sleep(rng.uniform(0, 0.3))
            await self._delete(process, name)
            return
        held = await self._board.until(lambda: self._state(name) not in (None, "Pending"), 30)
        if not held or self._state(name) != "Held":
            return
        if rng.random() < 0.3:
            await asyncio.sleep(rng.uniform(0, 2) * self._pace)
            await self._change_ttl(process, name)
        for _ in range(rng.choice([0, 0, 1, 3])):
            await asyncio.sleep(rng.uniform(0, 1.5) * self._pace)
            told = self._board.get("assetlocks", name) or {}
            chosen = chosen or [one["name"] for one in told.get("status", {}).get("assets") or ()]
            await self._work(rng.choice(chosen or self._assets), name)
        await asyncio.sleep(rng.expovariate(0.5) * self._pace)
        if rng.random() < 0.7:
            await self._delete(process, name)

    def _choose(self) -> tuple[dict[str, Any], list[str]]:
        """One asset; or several of them, if there are."""
        rng = self._random
        if not self._joint or rng.random() < 0.5:
            one = rng.choice(self._assets)
            return {"assetName": one}, [one]
        if rng.random() < 0.3:
            return {"assetSelector": {"matchLabels": {"pool": "a"}}, "count": rng.randint(1, 2)}, []
        several = rng.sample(self._assets, rng.randint(1, len(self._assets)))
        return {"assetNames": several}, several

    def _state(self, name: str) -> str | None:
        lock = self._board.get("assetlocks", name)
        return records.state_of(lock) if lock else None

    async def _change_ttl(self, process: Process, name: str) -> None:
        patch = {"spec": {"ttl": self._random.choice(["1s", "3s", "8s"])}}
        await send(process.client, "PATCH", ASSETLOCKS.path(NAMESPACE, name), patch, MERGE)

    async def _work(self, asset: str, name: str) -> None:
        """A holder's write to a target extends its lock: admission renews the Lease, and nothing else."""
        for slot in range(self._slots):
            lease = self._board.get("leases", names.lease_name(asset, slot))
            if lease and lease["metadata"]["annotations"].get(names.LOCK_ANNOTATION) == name:
                metadata = {"resourceVersion": lease["metadata"]["resourceVersion"]}
                patch = {"metadata": metadata, "spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}}
                path = LEASES.path(NAMESPACE, names.lease_name(asset, slot))
                await send(self._admission, "PATCH", path, patch, MERGE)
                return

    async def _delete(self, process: Process, name: str) -> None:
        for _ in range(3):
            reply = await send(process.client, "DELETE", ASSETLOCKS.path(NAMESPACE, name))
            if reply is not None and reply.status in (200, 404):
                return
            await asyncio.sleep(0.5)


class Job:
    """Makes Leases by hand, renews them with nonsense for times, and gives them back in one way or another."""

    def __init__(self, board: Board, rng: random.Random, assets: list[str], plan: Plan, until: float) -> None:
        self._board = board
        self._slots = plan.capacity
        self._pace = plan.pace
        self._random = rng
        self._assets = assets
        self._until = until

    async def run(self, process: Process) -> None:
        """Until it is time to stop."""
        loop = asyncio.get_running_loop()
        while loop.time() < self._until:
            await asyncio.sleep(self._random.expovariate(0.5) * self._pace)
            await self._one(process, self._random.choice(self._assets))

    async def _one(self, process: Process, asset: str) -> None:
        rng = self._random
        name = names.lease_name(asset, rng.randrange(self._slots))
        lease: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "labels": {names.ASSET_LABEL: asset}},
            "spec": {"holderIdentity": process.name, "leaseDurationSeconds": rng.choice([1, 2, 5])},
        }
        if rng.random() < 0.5:
            # Needed while admission does not answer.
            lease["metadata"]["annotations"] = {names.OWNER_ANNOTATION: f"- {process.user.name}"}
        present = self._board.get("leases", name)
        if present is not None and not present["spec"].get("holderIdentity"):
            lease["metadata"] |= {"resourceVersion": present["metadata"]["resourceVersion"]}
            reply = await send(process.client, "PUT", LEASES.path(NAMESPACE, name), lease)
        else:
            reply = await send(process.client, "POST", LEASES.path(NAMESPACE), lease)
        if reply is None or reply.status >= 300:
            return
        await self._board.until(lambda: self._is_announced(name), rng.choice([1, 8]))
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(rng.uniform(0, 1.5) * self._pace)
            future = {"spec": {"renewTime": "2099-01-01T00:00:00.000000Z"}}
            await send(process.client, "PATCH", LEASES.path(NAMESPACE, name), future, MERGE)
        await asyncio.sleep(rng.expovariate(1.0) * self._pace)
        await self._give_back(process, name)

    def _is_announced(self, name: str) -> bool:
        lease = self._board.get("leases", name)
        return lease is None or names.TOKEN_ANNOTATION in lease["metadata"].get("annotations", {})

    async def _give_back(self, process: Process, name: str) -> None:
        path = LEASES.path(NAMESPACE, name)
        match self._random.choice(["delete", "delete", "release", "forget"]):
            case "delete":
                await send(process.client, "DELETE", path)
            case "release":
                body = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
                await send(process.client, "PATCH", path, body, MERGE)


class Writer:
    """Writes to targets all the time, as one user after another, locked or not."""

    def __init__(
        self, world: World, rng: random.Random, users: list[str], targets: list[str], plan: Plan, until: float
    ) -> None:
        self._random = rng
        self._pace = plan.pace
        self._targets = targets
        self._until = until
        self._under_way: set[asyncio.Task[Reply | None]] = set()
        self._clients = [Client(world.server, User(user), world.faults_for(f"as {user}")) for user in users]

    async def run(self, process: Process) -> None:
        """Until it is time to stop."""
        loop = asyncio.get_running_loop()
        number = 0
        while loop.time() < self._until:
            await asyncio.sleep(self._random.expovariate(2.5))
            number += 1
            client = self._random.choice(self._clients)
            path = CONFIG_MAPS.path(NAMESPACE, self._random.choice(self._targets))
            body = {"data": {"by": client.user.name, "number": str(number)}}
            write = loop.create_task(send(client, "PATCH", path, body, MERGE), name="write")
            self._under_way.add(write)
            write.add_done_callback(self._under_way.discard)


async def delete_leases(
    world: World, board: Board, rng: random.Random, assets: list[str], plan: Plan
) -> None:
    """An administrator who now and then deletes somebody's Lease, for whatever reason."""
    client = world.client(User(SUPERUSER))
    for _ in range(2):
        await asyncio.sleep(rng.uniform(0, 10) * plan.pace)
        name = names.lease_name(rng.choice(assets), rng.randrange(plan.capacity))
        await board.until(lambda name=name: board.get("leases", name) is not None, 10)  # type: ignore[misc]
        await asyncio.sleep(rng.choice([0.0, 0.01, 0.03, 1.0]))
        await send(client, "DELETE", LEASES.path(NAMESPACE, name))


async def resize(world: World, rng: random.Random, asset: str, plan: Plan) -> None:
    """An administrator who makes room and takes it away again, whoever holds."""
    client = world.client(User(SUPERUSER))
    slots = plan.capacity
    for capacity in (rng.randint(1, slots), rng.randint(1, slots), slots):
        await asyncio.sleep(rng.uniform(0, 4) * plan.pace)
        await send(client, "PATCH", ASSETS.path(NAMESPACE, asset), {"spec": {"capacity": capacity}}, MERGE)


def users_of(count: int) -> Iterator[str]:
    """Names for so many lockers."""
    return (f"user-{number}" for number in range(count))
