"""What is remembered of targets that can't be fenced."""

from __future__ import annotations

import asyncio

from assetlock.controller.clock import SystemClock
from assetlock.controller.keys import AssetKey
from assetlock.controller.targets.targets import Targets
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.resources import CONFIG_MAPS
from assetlock.model.asset import Asset, AssetSpec, Target
from assetlock.model.meta import ObjectMeta
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.server import Server

KEY = AssetKey("shop", "web")
NONSENSE = Target(api_version="v1", kind="Nonsense", name="web")


class NoServer:
    """Fails the test when anything is asked of it."""

    def __getattr__(self, name: str) -> None:
        raise AssertionError(f"{name} was used")


def test_the_problem_of_a_target_that_is_named_no_longer_is_not_rechecked_for_ever() -> None:
    async def story() -> None:
        api = Api(NoServer())  # type: ignore[arg-type]
        targets = Targets(api, Discovery(api), SystemClock(), lambda _: None)
        targets.problem(KEY, NONSENSE, "the API server has no kind 'Nonsense'")
        assert targets.recheck_at(KEY) is not None
        await targets.observe(KEY, Asset(metadata=ObjectMeta(name="web", namespace="shop"), spec=AssetSpec()))
        assert targets.recheck_at(KEY) is None

    virtual.run(story, limit=60)


def test_a_target_with_a_problem_is_not_taken_for_an_object_that_the_asset_no_longer_names() -> None:
    config = Target(api_version="v1", kind="ConfigMap", name="config")
    asset = Asset(metadata=ObjectMeta(name="web", namespace="shop"), spec=AssetSpec(targets=[config]))

    async def story() -> None:
        loop = asyncio.get_running_loop()
        client = Client(Server(virtual.Clock(loop)))
        api = Api(client)
        stamped = {names.stamp_key("web", "shop"): "some uid\n1 - alice"}
        metadata = {"name": "config", "annotations": stamped}
        await api.create(CONFIG_MAPS, "shop", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        targets = Targets(api, Discovery(api), virtual.Clock(loop), lambda _: None)
        assert [found.wanted for found in await targets.observe(KEY, asset)] == [True]
        targets.problem(KEY, config, "ConfigMap config can't be stamped")
        assert [found.wanted for found in await targets.observe(KEY, asset)] == [True]
        nothing_named = asset.model_copy(update={"spec": AssetSpec()})
        assert [found.wanted for found in await targets.observe(KEY, nothing_named)] == [False]
        await targets.close()

    virtual.run(story, limit=60)
