"""Targets by selector, as the controller sees them: who is told of what, and which objects are an asset's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from assetlock.controller.keys import AssetKey
from assetlock.controller.targets import targets as targets_module
from assetlock.controller.targets.targets import Targets
from assetlock.core import names
from assetlock.core.observation import ObservedTarget
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.resources import CONFIG_MAPS
from assetlock.model.asset import Asset, AssetSpec, Target
from assetlock.model.meta import ObjectMeta
from assetlock.model.selector import LabelSelector
from tests.sim import policies, virtual
from tests.sim.admission import ADMIN, User
from tests.sim.client import Client
from tests.sim.server import Server

WEB = AssetKey("shop", "web")
DB = AssetKey("shop", "db")


class Stage:
    """A simulated cluster with the fence in force, and what the controller knows of the targets in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = virtual.Clock(loop)
        self.server = Server(self.clock)
        self.server.writer.plugins += policies.plugins()
        self.admin = Api(Client(self.server, ADMIN))
        self.told: list[AssetKey] = []
        api = Api(Client(self.server, User(names.CONTROLLER_USER)))
        self.targets = Targets(api, Discovery(api), self.clock, self.told.append)

    async def make(self, name: str, app: str, **annotations: str) -> dict[str, Any]:
        metadata = {"name": name, "labels": {"app": app}, "annotations": annotations}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        return await self.admin.create(CONFIG_MAPS, "shop", body)

    async def change(self, name: str, **metadata: Any) -> dict[str, Any]:
        live = await self.admin.get(CONFIG_MAPS, "shop", name)
        version = live["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, **metadata}}
        return await self.admin.merge_patch(CONFIG_MAPS, "shop", name, patch)

    async def write(self, name: str, content: str) -> None:
        live = await self.admin.get(CONFIG_MAPS, "shop", name)
        await self.admin.replace(CONFIG_MAPS, "shop", name, {**live, "data": {"content": content}})

    async def seen(self, key: AssetKey, app: str) -> list[str]:
        """The names of the objects that an asset with this selector stands for."""
        found = await self.observed(key, app)
        return [each.target.name or "" for each in found if each.uid and each.wanted]

    async def observed(self, key: AssetKey, app: str) -> tuple[ObservedTarget, ...]:
        selector = LabelSelector(match_labels={"app": app})
        target = Target(api_version="v1", kind="ConfigMap", selector=selector)
        meta = ObjectMeta(name=key.name, namespace=key.namespace)
        return await self.targets.observe(key, Asset(metadata=meta, spec=AssetSpec(targets=[target])))


def tell(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged() -> None:
        stage = Stage(asyncio.get_running_loop())
        await policies.install(stage.admin)
        await story(stage)
        await stage.targets.close()

    virtual.run(staged, limit=600)


def test_nobody_is_told_of_content_but_of_all_that_a_stamp_may_depend_on() -> None:
    async def story(stage: Stage) -> None:
        await stage.make("a", "web")
        assert await stage.seen(WEB, "web") == ["a"]
        stage.told.clear()
        await stage.write("a", "of a holder's")
        await asyncio.sleep(1)
        assert stage.told == []
        assert (await stage.observed(WEB, "web"))[0].resource_version == (
            await stage.admin.get(CONFIG_MAPS, "shop", "a")
        )["metadata"]["resourceVersion"]
        for change in ({"annotations": {"a": "b"}}, {"labels": {"app": "web", "tier": "1"}}):
            stage.told.clear()
            await stage.change("a", **change)
            await asyncio.sleep(1)
            assert stage.told == [WEB]

    tell(story)


def test_only_the_assets_whose_selection_an_object_enters_or_leaves_are_told() -> None:
    async def story(stage: Stage) -> None:
        await stage.make("a", "web")
        assert (await stage.seen(WEB, "web"), await stage.seen(DB, "db")) == (["a"], [])
        stage.told.clear()
        await stage.make("b", "cache")
        await asyncio.sleep(1)
        assert stage.told == []
        await stage.make("c", "db")
        await asyncio.sleep(1)
        assert stage.told == [DB]
        stage.told.clear()
        await stage.change("a", labels={"app": "db"})
        await asyncio.sleep(1)
        assert set(stage.told) == {WEB, DB}
        assert (await stage.seen(WEB, "web"), await stage.seen(DB, "db")) == ([], ["a", "c"])

    tell(story)


def test_what_is_read_for_one_asset_is_told_to_the_other_that_it_concerns() -> None:
    async def story(stage: Stage) -> None:
        await stage.make("a", "web")
        await stage.seen(WEB, "web")
        [found] = await stage.observed(DB, "web")
        live = await stage.admin.get(CONFIG_MAPS, "shop", "a")
        later = str(int(live["metadata"]["resourceVersion"]) + 1)
        metadata = {**live["metadata"], "resourceVersion": later, "labels": {"app": "none"}}
        stage.told.clear()
        stage.targets.put(found.target, "shop", {**live, "metadata": metadata})
        assert set(stage.told) == {WEB, DB}

    tell(story)


def test_when_too_much_comes_to_be_selected_what_is_stamped_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets_module, "MOST_SELECTED", 2)

    async def story(stage: Stage) -> None:
        for name in ("m", "n"):
            made = await stage.make(name, "web")
            stamp = f"{made['metadata']['uid']}\n1 - alice"
            await stage.change(name, annotations={names.stamp_key("web", "shop"): stamp})
        assert await stage.seen(WEB, "web") == ["m", "n"]
        await stage.make("a", "web")
        await asyncio.sleep(1)
        found = await stage.observed(WEB, "web")
        assert [each.target.name for each in found if each.uid and each.wanted] == ["m", "n"]
        assert "3 ConfigMap objects are selected by app=web; at most 2" in str(
            [each.problem for each in found if each.problem]
        )

    tell(story)


def test_a_copied_stamp_is_left_alone_while_the_lock_is_held() -> None:
    async def story(stage: Stage) -> None:
        await stage.make("copy", "other", **{names.stamp_key("web", "shop"): "another uid\n1 - alice"})
        await stage.make("a", "web")
        held = Asset.model_validate(
            {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"targets": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}]},
                "status": {
                    "holders": [{"identity": "alice", "fencingToken": 1, "acquisition": "first"}],
                },
            }
        )
        assert [each.target.name for each in await stage.targets.observe(WEB, held)] == ["a"]
        free = held.model_copy(update={"status": held.status.model_copy(update={"holders": []})})
        strays = [each.target.name for each in await stage.targets.observe(WEB, free) if not each.wanted]
        assert strays == ["copy"]

    tell(story)
