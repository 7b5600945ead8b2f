"""Maintenance windows with the real controller in virtual time: by the clock, through crashes and edits."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

from assetlock.kube.resources import CONFIG_MAPS, MAINTENANCE_WINDOWS
from assetlock.model.times import format_time
from tests.sim.admission import User
from tests.sim.clients import NAMESPACE, send
from tests.sim.test_controller import CALM, Telling, tell
from tests.sim.world import World

GIT = User("git", ("system:masters", "system:authenticated"))
MERGE = {"content-type": "application/merge-patch+json", "accept": "application/json"}


class Scheduling(Telling):
    """A calm world with windows in it."""

    async def schedule(self, **spec: Any) -> None:
        window = {
            "apiVersion": "assetlock.dev/v1alpha1",
            "kind": "MaintenanceWindow",
            "metadata": {"name": "freeze"},
            "spec": {"assetNames": ["vm"], "kind": "Block", "whenHeld": "Wait", **spec},
        }
        await send(self.world.client(GIT), "POST", MAINTENANCE_WINDOWS.path(NAMESPACE), window)

    async def change(self, **spec: Any) -> None:
        path = MAINTENANCE_WINDOWS.path(NAMESPACE, "freeze")
        await send(self.world.client(GIT), "PATCH", path, {"spec": spec}, MERGE)

    def ahead(self, seconds: float) -> str:
        """A time of day so far ahead."""
        return format_time(self.world.server.clock.now() + datetime.timedelta(seconds=seconds))

    async def refused(self) -> bool:
        """Whether a stranger's write is."""
        path = CONFIG_MAPS.path(NAMESPACE, "config")
        patch = {"data": {"at": str(self.world.loop.time())}}
        reply = await send(self.world.client(User("stranger")), "PATCH", path, patch, MERGE)
        assert reply is not None
        return reply.status == 403


def test_a_window_opens_and_closes_by_the_clock_again_and_again() -> None:
    async def story(world: World) -> None:
        told = Scheduling(world)
        await told.begin()
        await told.schedule(schedule="*/5 * * * *", duration="2m")
        closed = []
        for _ in range(11):
            await asyncio.sleep(60)
            closed.append((world.server.clock.now().minute % 5 < 2, await told.refused()))
        assert all(due == refused for due, refused in closed)
        assert {due for due, _ in closed} == {True, False}

    tell(story, CALM, seed="again")


def test_an_operator_that_was_down_across_a_start_and_one_that_was_across_an_end_catch_up() -> None:
    async def story(world: World) -> None:
        told = Scheduling(world)
        await told.begin()
        await told.schedule(start=told.ahead(20), end=told.ahead(120))
        told.story.judges.trouble_at = world.loop.time()
        for _, process in told.story.operators:
            await process.crash()
        await asyncio.sleep(60)
        assert not await told.refused()
        for _, process in told.story.operators:
            process.start()
        await asyncio.sleep(30)
        assert await told.refused()
        for _, process in told.story.operators:
            await process.crash()
        await asyncio.sleep(60)
        assert await told.refused(), "the fence needs no operator"
        told.story.judges.trouble_at = world.loop.time()
        for _, process in told.story.operators:
            process.start()
        await asyncio.sleep(30)
        assert not await told.refused()

    tell(story, CALM, seed="down")


def test_an_edit_takes_effect_at_once() -> None:
    async def story(world: World) -> None:
        told = Scheduling(world)
        await told.begin()
        await told.schedule(start=told.ahead(-60), end=told.ahead(3600))
        await asyncio.sleep(1)
        assert await told.refused()
        await told.change(suspend=True)
        await asyncio.sleep(1)
        assert not await told.refused()
        await told.change(suspend=False)
        await asyncio.sleep(1)
        assert await told.refused()

    tell(story, CALM, seed="edit")
