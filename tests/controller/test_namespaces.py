"""Namespaces: watched, written in turn, and set free again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from assetlock.controller.keys import AssetKey
from assetlock.controller.namespaces import PROBLEM_RECHECK, Namespaces, needed_by
from assetlock.core import names
from assetlock.core.observation import ObservedNamespace
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict
from assetlock.kube.resources import NAMESPACES
from assetlock.model.asset import Asset, AssetSpec, Target
from assetlock.model.meta import ObjectMeta
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.server import Server

KEY, OTHER = AssetKey("shop", "web"), AssetKey("shop", "db")
ASSET = Asset(metadata=ObjectMeta(name="web", namespace="shop"), spec=AssetSpec())


class Stage:
    """The namespace shop in a simulated cluster."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.server = Server(virtual.Clock(loop))
        self.client = Client(self.server)
        self.api = Api(self.client)
        self.told: list[AssetKey] = []
        self.namespaces = Namespaces(self.api, virtual.Clock(loop), self.told.append)

    async def begin(self, **metadata: Any) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", **metadata}}
        await self.api.create(NAMESPACES, None, body)

    async def observed(self) -> ObservedNamespace:
        [space] = await self.namespaces.observe(KEY, ASSET)
        return space

    async def written(self) -> dict[str, Any]:
        metadata: dict[str, Any] = (await self.api.get(NAMESPACES, None, "shop"))["metadata"]
        return metadata


def told(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def whole() -> None:
        stage = Stage(asyncio.get_running_loop())
        await story(stage)
        await stage.namespaces.close()

    virtual.run(whole, limit=600)


def patched(space: ObservedNamespace, key: AssetKey, value: str | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"uid": space.uid, "resourceVersion": space.resource_version}
    return {
        "metadata": {**metadata, "annotations": {names.namespace_fence_key(key.name, key.namespace): value}}
    }


def test_a_write_that_was_decided_on_an_older_version_is_not_even_sent() -> None:
    async def story(stage: Stage) -> None:
        await stage.begin()
        space = await stage.observed()
        before = stage.client.requests
        both = [stage.namespaces.patch(space, patched(space, key, "1 - alice")) for key in (KEY, OTHER)]
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(second, Conflict)
        assert stage.client.requests == before + 1
        assert isinstance(first, dict)
        assert first["metadata"] == await stage.written()

    told(story)


def test_who_comes_later_finds_what_was_written_before_without_asking() -> None:
    async def story(stage: Stage) -> None:
        await stage.begin()
        space = await stage.observed()
        await stage.namespaces.patch(space, patched(space, KEY, "1 - alice"))
        again = await stage.observed()
        await stage.namespaces.patch(again, patched(again, OTHER, "1 - bob"))
        assert set((await stage.written())["annotations"].values()) == {"1 - alice", "1 - bob"}

    told(story)


def test_only_the_asset_is_woken_whose_guard_has_changed() -> None:
    async def story(stage: Stage) -> None:
        await stage.begin()
        space = await stage.observed()
        await stage.namespaces.observe(OTHER, ASSET)
        await stage.api.merge_patch(NAMESPACES, None, "shop", patched(space, OTHER, "1 - bob"))
        await asyncio.sleep(1)
        assert stage.told == [OTHER]

    told(story)


def test_every_asset_there_is_woken_when_the_label_goes() -> None:
    async def story(stage: Stage) -> None:
        await stage.begin(labels={names.GUARDED_LABEL: "true"})
        space = await stage.observed()
        await stage.namespaces.observe(OTHER, ASSET)
        patch = patched(space, KEY, None)
        patch["metadata"]["labels"] = {names.GUARDED_LABEL: None}
        stage.told.clear()
        await stage.api.merge_patch(NAMESPACES, None, "shop", patch)
        await asyncio.sleep(1)
        assert set(stage.told) == {KEY, OTHER}

    told(story)


def test_a_problem_is_told_and_worth_another_try_later() -> None:
    async def story(stage: Stage) -> None:
        await stage.begin()
        await stage.observed()
        stage.namespaces.problem("shop", "namespace shop can't be guarded: forbidden")
        assert (await stage.observed()).problem == "namespace shop can't be guarded: forbidden"
        assert stage.namespaces.recheck_at(KEY) is not None
        assert stage.namespaces.recheck_at(AssetKey("elsewhere", "web")) is None
        await asyncio.sleep(PROBLEM_RECHECK + 1)
        assert (await stage.observed()).problem is None

    told(story)


@pytest.mark.parametrize(
    ("needed", "guards", "kept"),
    [({"shop"}, {}, True), (set(), {}, False), (set(), {KEY: "1 - alice"}, True)],
)
def test_the_label_goes_when_no_asset_needs_it_and_nothing_is_closed(
    needed: set[str], guards: dict[AssetKey, str], kept: bool
) -> None:
    annotations = {names.namespace_fence_key(key.name, key.namespace): value for key, value in guards.items()}

    async def story(stage: Stage) -> None:
        await stage.begin(labels={names.GUARDED_LABEL: "true"}, annotations=annotations)
        await stage.namespaces.free(needed)
        await asyncio.sleep(1)
        await stage.namespaces.free(needed)
        assert (names.GUARDED_LABEL in (await stage.written()).get("labels", {})) is kept

    told(story)


def test_a_guard_that_was_left_while_nobody_looked_wakes_its_asset_though_there_is_none() -> None:
    async def story(stage: Stage) -> None:
        await stage.begin(annotations={names.namespace_fence_key("gone", "shop"): "1 - alice"})
        await stage.namespaces.free(set())
        await asyncio.sleep(1)
        assert stage.told == [AssetKey("shop", "gone")]
        [space] = await stage.namespaces.observe(AssetKey("shop", "gone"), None)
        assert space.name == "shop"

    told(story)


def test_the_namespaces_of_an_asset_are_its_own_and_those_of_its_targets_but_never_kube_system() -> None:
    places = (None, "shop", "ops", "kube-system")
    targets = [Target(api_version="v1", kind="ConfigMap", name="a", namespace=place) for place in places]
    assert needed_by(ASSET.model_copy(update={"spec": AssetSpec(targets=targets)})) == {"shop", "ops"}
