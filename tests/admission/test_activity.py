"""What is recorded of holders' writes, in which order and at which pace."""

from __future__ import annotations

import asyncio
import datetime
import itertools
from collections.abc import Awaitable, Callable

from assetlock.admission.review import Requester
from assetlock.admission.upkeep.activity import DELAYED, PAUSE, ActivityRecorder
from assetlock.core import names
from assetlock.core.identity import Identity
from assetlock.kube.api import Api
from assetlock.kube.resources import ASSETS, LEASES
from assetlock.model.times import format_micro_time
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.server import Server
from tests.sim.store import Change

ALICE = Requester("alice")


class Stage:
    """Assets that alice holds by Leases of her own, and what is written to them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = virtual.Clock(loop)
        server = Server(self.clock)
        client = Client(server)
        self.api, self.faults = Api(client), client.faults
        self.ends: dict[str, datetime.datetime] = {}
        self.activity = ActivityRecorder(
            self.api, expires=lambda _namespace, asset: self.ends.get(asset), now=self.clock.now
        )
        self.written: list[Change] = []
        server.store.on_commit.append(self.written.append)

    async def held(self, name: str) -> None:
        await self.api.create(ASSETS, "shop", {**_named("Asset", name), "spec": {"type": "Test"}})
        lease = _named("Lease", names.lease_name(name))
        lease["metadata"] |= {
            "labels": {names.ASSET_LABEL: name},
            "annotations": {names.OWNER_ANNOTATION: str(Identity("alice"))},
        }
        since = format_micro_time(self.clock.now() - datetime.timedelta(seconds=30))
        spec = {"holderIdentity": "alice", "leaseDurationSeconds": 60, "renewTime": since}
        await self.api.create(LEASES, "shop", {**lease, "spec": spec})

    async def condition(self, name: str) -> tuple[str, str]:
        """Status and reason of what its Asset says of delays."""
        told = (await self.api.get(ASSETS, "shop", name))["status"]["conditions"]
        return next((c["status"], c["reason"]) for c in told if c["type"] == DELAYED)

    async def recorded(self, seconds: float) -> list[tuple[float, str]]:
        """The writes of the next seconds, with when after their beginning each came."""
        self.written.clear()
        began = self.clock.monotonic()
        recording = asyncio.create_task(self.activity.run())
        await asyncio.sleep(seconds)
        recording.cancel()
        return [(change.time - began, change.key.name) for change in self.written]


def _named(kind: str, name: str) -> dict[str, object]:
    resource = ASSETS if kind == "Asset" else LEASES
    return {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name}}


def tell(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged() -> None:
        await story(Stage(asyncio.get_running_loop()))

    virtual.run(staged, limit=600)


def test_however_often_somebody_writes_it_is_recorded_once_in_a_pause_first_on_the_asset() -> None:
    async def story(stage: Stage) -> None:
        await stage.held("vm")
        for _ in range(100):
            stage.activity.note_write("shop", "vm", ALICE)
        recorded = await stage.recorded(PAUSE * 3)
        assert [name for _, name in recorded] == ["vm", "asset.vm"]

    tell(story)


def test_the_writes_to_many_assets_are_recorded_one_after_another_over_the_pause() -> None:
    async def story(stage: Stage) -> None:
        assets = [f"vm-{number}" for number in range(10)]
        for name in assets:
            await stage.held(name)
            stage.activity.note_write("shop", name, ALICE)
        recorded = await stage.recorded(PAUSE * 2)
        times = [at for at, name in recorded if name in assets]
        assert len(times) == len(assets)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert min(gaps) >= PAUSE / len(assets)
        assert times[-1] < PAUSE * 2

    tell(story)


def test_an_asset_that_is_gone_keeps_no_lease_from_being_renewed() -> None:
    async def story(stage: Stage) -> None:
        await stage.held("vm")
        meta = (await stage.api.get(ASSETS, "shop", "vm"))["metadata"]
        await stage.api.delete(
            ASSETS, "shop", "vm", uid=meta["uid"], resource_version=meta["resourceVersion"]
        )
        stage.activity.note_write("shop", "vm", ALICE)
        assert [name for _, name in await stage.recorded(1)] == ["asset.vm"]

    tell(story)


ENDS = [40, 10, 30, 20]


async def throttled(stage: Stage) -> list[str]:
    """Writes to assets whose locks end in so many seconds, while each answer takes one; gives what is recorded."""
    for seconds in ENDS:
        await stage.held(f"vm-{seconds}")
        stage.ends[f"vm-{seconds}"] = stage.clock.now() + datetime.timedelta(seconds=seconds)
        stage.activity.note_write("shop", f"vm-{seconds}", ALICE)
    stage.faults.drag = 1.0
    return [name for _, name in await stage.recorded(60)]


def test_under_throttling_the_lock_that_ends_first_is_extended_first() -> None:
    async def story(stage: Stage) -> None:
        recorded = await throttled(stage)
        assert [name for name in recorded if name.startswith("asset.")] == [
            f"asset.vm-{seconds}" for seconds in sorted(ENDS)
        ]

    tell(story)


def test_throttling_is_named_once_on_an_asset_and_taken_back_when_it_is_over() -> None:
    async def story(stage: Stage) -> None:
        recorded = await throttled(stage)
        assert recorded.count("vm-30") == 1, "who wrote last is not noted meanwhile"
        assert await stage.condition("vm-30") == ("True", "Throttled")
        stage.activity.note_write("shop", "vm-30", ALICE)
        assert (await stage.recorded(60)).count("vm-30") == 0, "it is said already"
        stage.faults.drag = 0.0
        for _ in range(2):
            stage.activity.note_write("shop", "vm-30", ALICE)
            await stage.recorded(PAUSE * 2)
        assert await stage.condition("vm-30") == ("False", "Prompt")

    tell(story)
