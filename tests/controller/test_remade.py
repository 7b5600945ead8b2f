"""An object that was made anew under its name: a late word of the first takes nothing of the second."""

import asyncio

from assetlock.controller.keys import AssetKey
from assetlock.controller.pods import Pods
from assetlock.controller.targets.targets import Targets
from assetlock.core.pods import PodRef
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.resources import CONFIG_MAPS, PODS, Resource
from assetlock.model.asset import Asset, AssetSpec, Target
from assetlock.model.meta import ObjectMeta
from tests.controller.lagging import Lagging
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.server import Server

KEY = AssetKey("shop", "web")
PAGE = Target(api_version="v1", kind="ConfigMap", name="page")
ASSET = Asset(metadata=ObjectMeta(name="web", namespace="shop"), spec=AssetSpec(targets=[PAGE]))


class Stage:
    """A cluster, who looks at it through watches that lag, and who changes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = virtual.Clock(loop)
        server = Server(self.clock)
        self._admin = Api(Client(server))
        self.lagging = Lagging(Client(server))
        self.api = Api(self.lagging)

    async def make(self, resource: Resource, space: str, name: str) -> str:
        """Make an object; gives its UID."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        made = await self._admin.create(resource, space, {**kind, "metadata": {"name": name}})
        return str(made["metadata"]["uid"])

    async def make_anew(self, resource: Resource, space: str, name: str) -> str:
        """Make another in its place, of which no watch tells; gives its UID."""
        self.lagging.hold()
        meta = (await self._admin.get(resource, space, name))["metadata"]
        version = meta["resourceVersion"]
        await self._admin.delete(resource, space, name, uid=meta["uid"], resource_version=version)
        return await self.make(resource, space, name)

    async def tell_of_the_end_of_the_first(self) -> None:
        self.lagging.let(1)
        await asyncio.sleep(1)


def test_a_target_that_was_found_by_looking_is_not_lost_when_its_namesakes_end_is_told() -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        targets = Targets(stage.api, Discovery(stage.api), stage.clock, lambda _: None, trials=False)
        await stage.make(CONFIG_MAPS, "shop", "page")
        await targets.observe(KEY, ASSET)
        second = await stage.make_anew(CONFIG_MAPS, "shop", "page")
        targets.put(PAGE, "shop", await stage.api.get(CONFIG_MAPS, "shop", "page"))
        for _ in range(2):
            [observed] = await targets.observe(KEY, ASSET)
            assert observed.uid == second
            await stage.tell_of_the_end_of_the_first()
        await targets.close()

    virtual.run(story, limit=60)


def test_a_pod_that_was_found_by_looking_has_not_ended_when_its_namesakes_end_is_told() -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        pods = Pods(stage.api, stage.clock, lambda *_: None)
        first = PodRef("shop", "job", await stage.make(PODS, "shop", "job"))
        pods.observe(KEY, [first])
        await asyncio.sleep(1)
        second = PodRef("shop", "job", await stage.make_anew(PODS, "shop", "job"))
        await pods.read(second)
        for _ in range(2):
            assert pods.observe(KEY, [second])[second.uid].ended is None
            await stage.tell_of_the_end_of_the_first()
        await pods.close()

    virtual.run(story, limit=60)
