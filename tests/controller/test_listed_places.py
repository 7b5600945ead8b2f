"""Stamps are found where the Asset lists that they may be, by a process that has seen none of them put there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from assetlock.controller.keys import AssetKey
from assetlock.controller.targets.problems import RECHECK
from assetlock.controller.targets.targets import Targets
from assetlock.core import names
from assetlock.core.observation import ObservedTarget
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.resources import CONFIG_MAPS, SECRETS, Resource
from assetlock.kube.transport import Unreachable
from assetlock.model.asset import Asset, AssetSpec, AssetStatus, FencedPlace, Target
from assetlock.model.meta import ObjectMeta
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.server import Server

KEY = AssetKey("shop", "web")
MAPS = FencedPlace(api_version="v1", kind="ConfigMap", namespace="shop")
NONSENSE = FencedPlace(api_version="v1", kind="Nonsense", namespace="shop")
PASSWORD = Target(api_version="v1", kind="Secret", name="password")


class Network(Client):
    """Gets through to everything but to paths with this word in them."""

    closed = "nothing"

    async def request(self, method: str, path: str, **how: Any) -> Any:
        if self.closed in path:
            raise Unreachable("no way there")
        return await super().request(method, path, **how)


class Stage:
    """A ConfigMap with the asset's stamp, and a process that starts now."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = virtual.Clock(loop)
        server = Server(self.clock)
        self.admin = Api(Client(server))
        self.network = Network(server)
        self.told: list[AssetKey] = []
        api = Api(self.network)
        self.targets = Targets(api, Discovery(api), self.clock, self.told.append, trials=False)

    async def make(self, resource: Resource, name: str) -> None:
        body = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": name}}
        await self.admin.create(resource, "shop", body)

    async def stamp(self, name: str) -> None:
        """Stamp a ConfigMap for somebody."""
        meta = (await self.admin.get(CONFIG_MAPS, "shop", name))["metadata"]
        metadata = {
            "resourceVersion": meta["resourceVersion"],
            "labels": {names.FENCED_LABEL: "true"},
            "annotations": {names.stamp_key("web", "shop"): f"{meta['uid']}\n1 - alice"},
        }
        await self.admin.merge_patch(CONFIG_MAPS, "shop", name, {"metadata": metadata})

    async def delete(self, name: str) -> None:
        meta = (await self.admin.get(CONFIG_MAPS, "shop", name))["metadata"]
        await self.admin.delete(
            CONFIG_MAPS, "shop", name, uid=meta["uid"], resource_version=meta["resourceVersion"]
        )

    async def observed(self, *listed: FencedPlace) -> tuple[ObservedTarget, ...]:
        """The targets of an asset that names a Secret and lists these places."""
        meta, status = ObjectMeta(name="web", namespace="shop"), AssetStatus(fenced_places=list(listed))
        asset = Asset(metadata=meta, spec=AssetSpec(targets=[PASSWORD]), status=status)
        return await self.targets.observe(KEY, asset)

    async def strays(self, *listed: FencedPlace) -> list[str | None]:
        return [each.target.name for each in await self.observed(*listed) if not each.wanted]


def tell(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged() -> None:
        stage = Stage(asyncio.get_running_loop())
        await stage.make(SECRETS, "password")
        await stage.make(CONFIG_MAPS, "app")
        await stage.stamp("app")
        await story(stage)
        await stage.targets.close()

    virtual.run(staged, limit=600)


def test_what_is_stamped_where_the_asset_names_nothing_any_more_is_found() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.strays() == []
        assert await stage.strays(MAPS) == ["app"]
        (stray,) = [each for each in await stage.observed(MAPS) if not each.wanted]
        assert stage.targets.place_of(stray.target, "shop") == "shop", "it can be written to"

    tell(story)


def test_a_listed_place_is_watched_for_as_long_as_it_is_listed() -> None:
    async def story(stage: Stage) -> None:
        await stage.make(CONFIG_MAPS, "other")
        await stage.delete("app")
        assert await stage.strays(MAPS) == []
        stage.targets.retire([KEY])
        await stage.stamp("other")
        await asyncio.sleep(1)
        assert KEY in stage.told
        assert await stage.strays(MAPS) == ["other"]
        await stage.delete("other")
        await asyncio.sleep(1)
        await stage.observed()
        stage.targets.retire([KEY])
        stage.told.clear()
        await stage.make(CONFIG_MAPS, "third")
        await stage.stamp("third")
        await asyncio.sleep(1)
        assert stage.told == []

    tell(story)


def test_a_listed_kind_that_is_no_longer_served_has_no_objects_and_is_not_asked_for_by_itself() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.strays(NONSENSE, MAPS) == ["app"]
        assert [each.problem for each in await stage.observed(NONSENSE)] == [None, None]
        assert stage.targets.recheck_at(KEY) is None

    tell(story)


def test_a_listed_place_that_cannot_be_looked_at_is_told_of_and_looked_at_again_later() -> None:
    async def story(stage: Stage) -> None:
        stage.network.closed = "configmaps"
        secret, maps = await stage.observed(MAPS)
        assert (secret.problem, secret.wanted) == (None, True)
        assert (maps.problem, maps.wanted) == ("ConfigMap objects in shop can't be watched", False)
        stage.network.closed = "nothing"
        assert stage.targets.recheck_at(KEY) is not None
        await asyncio.sleep(RECHECK)
        assert await stage.strays(MAPS) == ["app"]
        assert stage.targets.recheck_at(KEY) is None

    tell(story)


def test_a_listed_kind_of_a_server_that_does_not_answer_keeps_nobody_from_the_rest() -> None:
    async def story(stage: Stage) -> None:
        elsewhere = FencedPlace(api_version="apps/v1", kind="Deployment", namespace="shop")
        stage.network.closed = "/apis/apps/v1"
        secret, deployments = await stage.observed(elsewhere)
        assert secret.problem is None
        assert deployments.problem
        assert not deployments.wanted

    tell(story)
