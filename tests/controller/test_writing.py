"""What was decided on a version that has changed since is not written, and the next decision knows what is there."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from assetlock.controller.cache.cache import Cache
from assetlock.controller.keys import AssetKey
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile.writer import NothingChanged, Writer
from assetlock.controller.targets.targets import Targets
from assetlock.core import names
from assetlock.core.decision import ConfirmNoTarget, DeleteLease, Event, PatchTarget, ReplaceLease, Write
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.resources import CONFIG_MAPS, LEASES, Object, Resource
from assetlock.model.asset import Asset, AssetSpec, Target
from assetlock.model.meta import ObjectMeta
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.server import Server

KEY = AssetKey("shop", "web")
PAGE = Target(api_version="v1", kind="ConfigMap", name="page")
ASSET = Asset(metadata=ObjectMeta(name="web", namespace="shop"), spec=AssetSpec(targets=[PAGE]))
LEASE = "asset.web"


class Silent:
    def tell(self, namespace: str, happening: Event) -> None:
        """Nobody listens."""


class Stage:
    """A target and a Lease, what writes to them, and somebody who was there before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        clock = virtual.Clock(loop)
        self.api = api = Api(Client(Server(clock)))
        self.targets = Targets(api, Discovery(api), clock, lambda _: None, trials=False)
        spaces, pods = Namespaces(api, clock, lambda _: None), Pods(api, clock, lambda *_: None)
        cache = Cache()
        self.writer = Writer(api, cache, self.targets, spaces, pods, clock, Silent(), changed=lambda _: None)

    async def make(self) -> None:
        kinds: list[tuple[Resource, str, dict[str, Any]]] = [
            (CONFIG_MAPS, "page", {}),
            (LEASES, LEASE, {"labels": {names.ASSET_LABEL: "web"}}),
        ]
        for resource, name, metadata in kinds:
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            await self.api.create(resource, "shop", {**kind, "metadata": {"name": name, **metadata}})

    async def annotate(self, resource: Resource, name: str) -> Object:
        """Somebody was there first; gives what is there then."""
        meta = (await self.api.get(resource, "shop", name))["metadata"]
        metadata = {key: meta[key] for key in ("uid", "resourceVersion")} | {"annotations": {"by": "another"}}
        return await self.api.merge_patch(resource, "shop", name, {"metadata": metadata})

    async def decided_on_target(self) -> PatchTarget:
        (observed,) = await self.targets.observe(KEY, ASSET)
        metadata = {"uid": observed.uid, "resourceVersion": observed.resource_version}
        return PatchTarget(observed, {"metadata": metadata | {"annotations": {"by": "us"}}})

    async def decided_on_lease(self, write: type[Write]) -> Write:
        lease = await self.api.get(LEASES, "shop", LEASE)
        if write is DeleteLease:
            meta = lease["metadata"]
            return DeleteLease(LEASE, meta["uid"], meta["resourceVersion"])
        body = copy.deepcopy(lease)
        body["metadata"]["annotations"] = {"by": "us"}
        return ReplaceLease(body)


def test_a_stamp_does_not_go_over_what_became_of_the_target_meanwhile() -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        await stage.make()
        decided = await stage.decided_on_target()
        present = await stage.annotate(CONFIG_MAPS, "page")
        assert await stage.writer.apply(KEY, decided) is False
        assert await stage.api.get(CONFIG_MAPS, "shop", "page") == present
        (observed,) = await stage.targets.observe(KEY, ASSET)
        assert observed.annotations == {"by": "another"}
        assert await stage.writer.apply(KEY, await stage.decided_on_target()) is True
        await stage.targets.close()

    virtual.run(story)


@pytest.mark.parametrize("write", [ReplaceLease, DeleteLease])
def test_a_lease_is_left_as_it_became_meanwhile(write: type[Write]) -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        await stage.make()
        decided = await stage.decided_on_lease(write)
        present = await stage.annotate(LEASES, LEASE)
        assert await stage.writer.apply(KEY, decided) is False
        assert await stage.api.get(LEASES, "shop", LEASE) == present
        assert await stage.writer.apply(KEY, await stage.decided_on_lease(write)) is True

    virtual.run(story)


def test_a_write_that_leaves_a_lease_as_it_is_is_not_made_over_and_over() -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        await stage.make()
        with pytest.raises(NothingChanged, match=f"ReplaceLease left {LEASE} as it was"):
            await stage.writer.apply(KEY, ReplaceLease(await stage.api.get(LEASES, "shop", LEASE)))

    virtual.run(story)


def test_a_target_that_does_not_take_its_stamp_can_not_be_fenced() -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        await stage.make()
        decided = await stage.decided_on_target()
        del decided.patch["metadata"]["annotations"]  # As if somebody's webhook took it off again.
        assert await stage.writer.apply(KEY, decided) is False
        (observed,) = await stage.targets.observe(KEY, ASSET)
        assert observed.problem is not None
        assert observed.problem.startswith("ConfigMap page can't be stamped: the API server takes it and")
        await stage.targets.close()

    virtual.run(story)


def test_that_a_target_is_not_there_is_looked_at_live_and_what_is_found_is_known() -> None:
    async def story() -> None:
        stage = Stage(asyncio.get_running_loop())
        assert [each.uid for each in await stage.targets.observe(KEY, ASSET)] == [None]
        assert await stage.writer.confirm(KEY, [ConfirmNoTarget(PAGE)])
        await stage.make()
        assert not await stage.writer.confirm(KEY, [ConfirmNoTarget(PAGE)])
        page = await stage.api.get(CONFIG_MAPS, "shop", "page")
        assert [each.uid for each in await stage.targets.observe(KEY, ASSET)] == [page["metadata"]["uid"]]
        await stage.targets.close()

    virtual.run(story)
