"""What some schedules have besides, and who sees to it: see `plan.Twist`."""

import asyncio
import datetime
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from assetlock.core import names
from assetlock.kube.resources import (
    ASSETLOCKS,
    ASSETS,
    CONFIG_MAPS,
    JOBS,
    LEASES,
    MAINTENANCE_WINDOWS,
    NODES,
    PODS,
)
from assetlock.model.times import format_time
from tests.sim import kinds, records
from tests.sim.admission import ADMIN, User
from tests.sim.client import Client
from tests.sim.clients import MERGE, NAMESPACE, Board, send
from tests.sim.plan import Plan, Twist
from tests.sim.policies import SUPERUSER
from tests.sim.store import Json
from tests.sim.webhooks import POD_NAME, POD_UID
from tests.sim.world import World

FINALIZER = "example.com/keeps"
LOST = [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]

Actor = Callable[["Stage"], Awaitable[None]]


class Stage:
    """What an actor has at hand."""

    def __init__(self, world: World, board: Board, plan: Plan, assets: list[str], rng: random.Random) -> None:
        self.world = world
        self.board = board
        self.plan = plan
        self.assets = assets
        self.random = rng
        self.root: Client = world.client(User(SUPERUSER))

    async def pause(self, longest: float) -> None:
        """A while, by the schedule's pace."""
        await asyncio.sleep(self.random.uniform(0, longest) * self.plan.pace)


def of_assets(plan: Plan) -> Json:
    """What twists put into the spec of Assets."""
    spec: Json = {}
    if plan.has(Twist.MAX_HOLD):
        spec["maxHold"] = "2s"
    if plan.has(Twist.LOCK_DELAY):
        spec["lockDelay"] = "2s"
    return spec


def of_lock(plan: Plan, rng: random.Random, board: Board, asset: str) -> Json:
    """What twists put into the spec of an AssetLock that is asked for now, of one asset."""
    spec: Json = {}
    if plan.has(Twist.QUARANTINE) and rng.random() < 0.5:
        spec["onExpiry"] = "Quarantine"
    if plan.has(Twist.TAKE_OVER) and rng.random() < 0.5:
        lease = board.get("leases", names.lease_name(asset)) or {"metadata": {}}
        holder = lease["metadata"].get("annotations", {}).get(names.LOCK_ANNOTATION)
        spec |= {"takeOver": holder} if holder else {}
    if plan.has(Twist.PODS):
        spec["releaseWithHolder"] = rng.random() < 0.8
    return spec


def actors(plan: Plan) -> Iterator[Actor]:
    """Who acts while new locks are asked for."""
    known: dict[Twist, Actor] = {
        Twist.PODS: _end_pods,
        Twist.REMADE_TARGET: _remake_target,
        Twist.REMADE_ASSET: _remake_asset,
        Twist.RETARGETED: _retarget,
        Twist.FINALIZERS: _keep_leases,
        Twist.WINDOWS: _close,
    }
    return (actor for twist, actor in known.items() if plan.has(twist))


async def end_quarantines(stage: Stage) -> None:
    """Somebody looks at what is quarantined, now and then, and deletes the lock."""
    while True:
        await asyncio.sleep(stage.random.uniform(0.3, 1.0))
        for lock in list(stage.world.server.store.objects(kinds.ASSETLOCKS)):
            if records.state_of(lock) == "Quarantined":
                await send(stage.root, "DELETE", ASSETLOCKS.path(NAMESPACE, lock["metadata"]["name"]))


async def start_pod(world: World, name: str) -> User:
    """A running pod of a Job on a node of its own; gives who runs in it."""
    admin = world.client(ADMIN)
    job: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    await send(admin, "POST", JOBS.path(NAMESPACE), job)
    await send(
        admin, "POST", NODES.path(None), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    )
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
    owner["uid"] = _get(world, kinds.JOBS, name)["metadata"]["uid"]
    metadata = {"name": name, "ownerReferences": [owner]}
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": name}}
    await send(admin, "POST", PODS.path(NAMESPACE), pod)
    await _says(admin, name, "Running", "True")
    uid = _get(world, kinds.PODS, name)["metadata"]["uid"]
    return User(f"system:serviceaccount:{NAMESPACE}:{name}", extra={POD_NAME: [name], POD_UID: [uid]})


def _get(world: World, served: kinds.Served, name: str) -> Json:
    return next(obj for obj in world.server.store.objects(served) if obj["metadata"]["name"] == name)


async def _says(client: Client, name: str, phase: str, ready: str) -> None:
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    await send(client, "PATCH", PODS.path(NAMESPACE, name, "status"), {"status": status}, MERGE)


async def _end_pods(stage: Stage) -> None:
    for number in range(stage.plan.lockers):
        await stage.pause(1)
        name = f"user-{number}"
        match stage.random.choice(["Succeeded", "Failed", "gone", "done", "lost", "lost and done"]):
            case "Succeeded" | "Failed" as phase:
                await _says(stage.root, name, phase, "False")
            case "gone":
                await send(stage.root, "DELETE", PODS.path(NAMESPACE, name))
            case how:
                if "lost" in how:
                    await send(stage.root, "PATCH", NODES.path(None, name), {"spec": {"taints": LOST}}, MERGE)
                    await _says(stage.root, name, "Running", "Unknown")
                if "done" in how:
                    done = {"conditions": [{"type": "Complete", "status": "True"}]}
                    path = JOBS.path(NAMESPACE, name, "status")
                    await send(stage.root, "PATCH", path, {"status": done}, MERGE)


async def _remake_target(stage: Stage) -> None:
    path, body = CONFIG_MAPS.path(NAMESPACE, "config"), {"apiVersion": "v1", "kind": "ConfigMap"}
    for _ in range(8):
        await stage.pause(0.5)
        reply = await send(stage.root, "DELETE", path)
        if reply is not None and reply.status == 200:
            await stage.pause(0.5)
            made = {**body, "metadata": {"name": "config"}, "data": {"made": "anew"}}
            await send(stage.root, "POST", CONFIG_MAPS.path(NAMESPACE), made)


async def _remake_asset(stage: Stage) -> None:
    asset = stage.board.get("assets", stage.assets[0])
    assert asset is not None
    await stage.pause(2)
    await send(stage.root, "DELETE", ASSETS.path(NAMESPACE, stage.assets[0]))
    try:
        await stage.pause(1)
    finally:
        body: dict[str, Any] = {"apiVersion": asset["apiVersion"], "kind": "Asset", "spec": asset["spec"]}
        body["metadata"] = {"name": stage.assets[0]}
        await send(stage.root, "POST", ASSETS.path(NAMESPACE), body)


async def _retarget(stage: Stage) -> None:
    path = ASSETS.path(NAMESPACE, stage.assets[0])
    for _ in range(3):
        await stage.pause(1)
        asset = stage.board.get("assets", stage.assets[0])
        if asset is None:
            continue
        others = [target for target in asset["spec"]["targets"] if target["name"] != "config"]
        config = {"apiVersion": "v1", "kind": "ConfigMap", "name": "config"}
        targets = [config, *others] if len(others) == len(asset["spec"]["targets"]) else others
        await send(stage.root, "PATCH", path, {"spec": {"targets": targets}}, MERGE)


async def _keep_leases(stage: Stage) -> None:
    path = LEASES.path(NAMESPACE, names.lease_name(stage.random.choice(stage.assets)))
    for _ in range(4):
        await stage.pause(1)
        await send(stage.root, "PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, MERGE)
        await stage.pause(2)


async def _close(stage: Stage) -> None:
    """A window that lasts a few seconds, and what people do to it. It may outlast the schedule's time of acting."""
    rng, path = stage.random, MAINTENANCE_WINDOWS.path(NAMESPACE)
    await stage.pause(1)
    for number in range(2):
        name = f"freeze-{number}"
        window: Json = {
            "apiVersion": names.API_VERSION,
            "kind": "MaintenanceWindow",
            "metadata": {"name": name},
        }
        assets = stage.assets if rng.random() < 0.3 else [rng.choice(stage.assets)]
        window["spec"] = {
            "assetNames": assets,
            "kind": rng.choice(["Block", "Block", "Allow"]),
            "whenHeld": rng.choice(["Wait", "Revoke", "Revoke", "Skip"]),
            "leadTime": rng.choice(["0s", "0s", "2s"]),
            "maintainers": rng.choice([[], [{"kind": "User", "name": "user-0"}]]),
            **_times(stage),
        }
        await send(stage.root, "POST", path, window)
        await stage.pause(3)
        match rng.choice(["leave", "leave", "suspend", "move", "delete"]):
            case "suspend":
                await send(stage.root, "PATCH", f"{path}/{name}", {"spec": {"suspend": True}}, MERGE)
            case "move":
                await send(stage.root, "PATCH", f"{path}/{name}", {"spec": _times(stage)}, MERGE)
            case "delete":
                await send(stage.root, "DELETE", f"{path}/{name}")


async def clear_windows_away(stage: Stage) -> None:
    """Somebody deletes windows that are over: outside an `Allow` window the asset would stay closed for ever."""
    now = stage.world.server.clock.now()
    for window in list(stage.world.server.store.objects(kinds.MAINTENANCE_WINDOWS)):
        if datetime.datetime.fromisoformat(window["spec"]["end"]) < now:
            path = MAINTENANCE_WINDOWS.path(NAMESPACE, window["metadata"]["name"])
            await send(stage.root, "DELETE", path)


def _times(stage: Stage) -> Json:
    now, rng = stage.world.server.clock.now(), stage.random
    start = now + datetime.timedelta(seconds=rng.choice([-1, 0, 1, 2]))
    end = start + datetime.timedelta(seconds=rng.choice([1, 3, 5]))
    return {"start": format_time(start), "end": format_time(end)}


async def let_leases_go(stage: Stage) -> None:
    """Whoever keeps Leases by a finalizer is done with them, late as that may be."""
    for lease in list(stage.world.server.store.objects(kinds.LEASES)):
        if lease["metadata"].get("finalizers"):
            path = LEASES.path(NAMESPACE, lease["metadata"]["name"])
            await send(stage.root, "PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
