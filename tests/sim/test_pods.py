"""The real controller and pods that end: locks end with them, on evidence alone, in time, at no cost to others."""

import asyncio
import dataclasses
import random
from typing import Any

import pytest

from assetlock.core import names
from assetlock.kube.resources import PODS
from tests.sim import webhooks
from tests.sim.admission import ADMIN, User
from tests.sim.clients import NAMESPACE, send
from tests.sim.kinds import PODS as SERVED_PODS
from tests.sim.server import Request
from tests.sim.store import Change, Json, Key, Store
from tests.sim.story import tell
from tests.sim.test_controller import CALM, Telling
from tests.sim.world import World

IN_TIME = 1.1
ROUGH = dataclasses.replace(CALM, roughness=1.0)
MERGE = {"content-type": "application/merge-patch+json", "accept": "application/json"}


class Pods:
    """Pods and those who run in them. No lock may end with a pod that has not: a judge looks at each that does."""

    def __init__(self, told: Telling) -> None:
        self._told = told
        self._admin = told.world.client(ADMIN)
        self._over: set[str] = set()
        told.world.judges.append(self._judge)

    async def start(self, name: str) -> User:
        """A running pod; gives who runs in it."""
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "n"}}
        await send(self._admin, "POST", PODS.path(NAMESPACE), body)
        await self.says(name, "Running")
        pod = _pod(self._told.world.server.store, name)
        assert pod is not None
        extra = {webhooks.POD_NAME: [name], webhooks.POD_UID: [pod["metadata"]["uid"]]}
        return User(f"system:serviceaccount:{NAMESPACE}:{name}", extra=extra)

    async def says(self, name: str, phase: str) -> None:
        status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
        await send(self._admin, "PATCH", PODS.path(NAMESPACE, name, "status"), {"status": status}, MERGE)

    async def vanish(self, name: str) -> None:
        await send(self._admin, "DELETE", PODS.path(NAMESPACE, name))

    async def end(self, name: str, how: str) -> None:
        """One of the ways in which pods end."""
        if how in ("Succeeded", "Failed"):
            await self.says(name, how)
            return
        await self.vanish(name)
        if how == "replaced":
            await self.start(name)

    async def ask(self, user: User, name: str, **spec: Any) -> None:
        lock = {"apiVersion": names.API_VERSION, "kind": "AssetLock", "metadata": {"name": name}}
        body = {**lock, "spec": {"assetName": "vm", **spec}}
        path = f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/assetlocks"
        await send(self._told.world.client(user), "POST", path, body)

    def _judge(self, change: Change) -> None:
        if change.key.plural != "assetlocks" or change.new is None or not _ended_with_pod(change.obj):
            return
        holder = change.obj["spec"]["holder"]
        pod = _pod(self._told.world.server.store, holder["podName"])
        alive = pod is not None and pod["metadata"]["uid"] == holder["podUID"]
        assert pod is None or not alive or pod["status"]["phase"] in ("Succeeded", "Failed"), (
            f"{change.key.name} ended with a pod that lives"
        )
        self._over.add(change.key.name)

    @property
    def ended(self) -> int:
        """How many locks have ended with their pods."""
        return len(self._over)


def _pod(store: Store, name: str) -> Json | None:
    version = store.get(Key(SERVED_PODS.group, SERVED_PODS.plural, NAMESPACE, name))
    return version.obj if version else None


def _ended_with_pod(lock: Json) -> bool:
    conditions = lock.get("status", {}).get("conditions", [])
    return any(c["type"] == "Finished" and c["reason"] in ("HolderGone", "HolderFailed") for c in conditions)


@pytest.mark.parametrize("how", ["Succeeded", "Failed", "vanished", "replaced"])
def test_a_lock_ends_within_a_second_of_its_pod_and_the_next_one_holds(how: str) -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        pods = Pods(told)
        await told.begin()
        await pods.ask(await pods.start("worker"), "first", ttl="1h", releaseWithHolder=True)
        await told.until("first", "Held", 1)
        await told.ask("second", wait="10m")
        await asyncio.sleep(1)
        await pods.end("worker", how)
        await told.until("second", "Held", IN_TIME)
        assert told.state("first") == "Released"

    tell(story, CALM, seed=how)


def test_locks_end_with_their_pods_and_with_nothing_else_however_rough_the_network() -> None:
    ended, plan = 0, CALM

    async def story(world: World) -> None:
        nonlocal ended
        told, rng = Telling(world, plan), random.Random(f"pods/{world.seed}")
        pods = Pods(told)
        await told.begin()
        users = {name: await pods.start(name) for name in ("a", "b", "c", "d")}
        for name, user in users.items():
            await pods.ask(user, name, ttl="1h", wait="1h", releaseWithHolder=True)
        for name in sorted(users, key=lambda _: rng.random()):
            await asyncio.sleep(rng.uniform(0, 20))
            await pods.end(name, rng.choice(["Succeeded", "Failed", "vanished", "replaced"]))
        world.quiet()
        over = await told.board.until(lambda: not told.story.judges.waiting(), 60)
        assert over, f"{told.story.judges.waiting()} have outlived their pods"
        ended += pods.ended

    for seed in range(8):
        plan = ROUGH if seed % 2 else CALM
        tell(story, plan, seed=seed)
    assert ended == 8 * 4, "each lock has ended with its pod"


def test_pods_that_hold_nothing_cost_no_request_and_no_watch() -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        pods = Pods(told)
        await told.begin()
        asked = _requests_about_pods(world)
        for number in range(20):
            await pods.start(f"other-{number}")
        await asyncio.sleep(40)
        assert asked == [], "nobody's pod holds a lock"
        await pods.ask(await pods.start("worker"), "first", ttl="1h", releaseWithHolder=True)
        await told.until("first", "Held", 1)
        before = len(asked)
        for number in range(20):
            await pods.end(f"other-{number}", "Failed")
        await asyncio.sleep(5)
        assert len(asked) == before
        selectors = {
            request.params.get("fieldSelector") for request in asked if request.path.endswith("/pods")
        }
        assert selectors == {"metadata.name=worker"}
        await pods.vanish("worker")
        await told.until("first", "Released", IN_TIME)

    tell(story, CALM, seed="others")


def _requests_about_pods(world: World) -> list[Request]:
    """What the controllers ask about pods from now on, watches too."""
    asked: list[Request] = []
    handle, open_watch = world.server.handle, world.server.open_watch

    def note(request: Request) -> None:
        if request.user.name == names.CONTROLLER_USER and "/pods" in request.path:
            asked.append(request)

    async def noted(request: Request) -> Any:
        note(request)
        return await handle(request)

    def noted_watch(request: Request) -> Any:
        note(request)
        return open_watch(request)

    world.server.handle, world.server.open_watch = noted, noted_watch  # type: ignore[method-assign]
    return asked
