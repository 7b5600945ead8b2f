"""Whether who set an asset's targets may still update them is asked beside everything else, now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from assetlock.controller.keys import AssetKey
from assetlock.controller.target_rights import ASKED_EVERY, TargetRights
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.model.asset import Asset, AssetSpec, AssetStatus, Target
from assetlock.model.conditions import set_condition
from assetlock.model.meta import ObjectMeta
from assetlock.model.selector import LabelSelector
from tests.sim import virtual
from tests.sim.admission import User
from tests.sim.client import Client
from tests.sim.server import Server

KEY = AssetKey("shop", "web")
APP = Target(api_version="v1", kind="ConfigMap", name="app")
ALL_WEB = Target(api_version="v1", kind="Secret", selector=LabelSelector(match_labels={"app": "web"}))


class Stage:
    """A server that authorizes by a list, and what is asked of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = virtual.Clock(loop)
        self.allowed = {("configmaps", "app"), ("secrets", "")}
        self.asked: list[tuple[str, str]] = []
        self.told: list[AssetKey] = []
        api = Api(Client(Server(self.clock, authorize=self._authorize), User(names.CONTROLLER_USER)))
        self.target_rights = TargetRights(api, Discovery(api), self.clock, self.told.append)

    def _authorize(self, user: User, attributes: Mapping[str, str]) -> bool:
        if user.name != "alice":
            return True
        assert "editors" in user.groups
        assert attributes["namespace"] == "shop"
        what = (attributes["resource"], attributes.get("name", ""))
        self.asked.append(what)
        return attributes["verb"] == "update" and what in self.allowed


def asset(*targets: Target, generation: int = 1, setter: str | None = "alice\neditors") -> Asset:
    annotations = {names.SETTER_ANNOTATION: setter} if setter else {}
    meta = ObjectMeta(name="web", namespace="shop", generation=generation, annotations=annotations)
    return Asset(metadata=meta, spec=AssetSpec(targets=list(targets)))


def tell(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged() -> None:
        stage = Stage(asyncio.get_running_loop())
        running = asyncio.create_task(stage.target_rights.run())
        await story(stage)
        running.cancel()

    virtual.run(staged, limit=3600)


def test_a_lock_does_not_wait_for_the_answer_and_is_told_when_it_comes() -> None:
    async def story(stage: Stage) -> None:
        assert stage.target_rights.denied(KEY, asset(APP, ALL_WEB)) is None
        await asyncio.sleep(1)
        assert stage.told == [KEY]
        assert stage.target_rights.denied(KEY, asset(APP, ALL_WEB)) == ()
        assert stage.asked == [("configmaps", "app"), ("secrets", "")]

    tell(story)


def test_a_right_that_is_lost_is_noticed_the_next_time_it_is_asked_for() -> None:
    async def story(stage: Stage) -> None:
        stage.target_rights.denied(KEY, asset(APP, ALL_WEB))
        await asyncio.sleep(1)
        stage.allowed.discard(("secrets", ""))
        stage.target_rights.denied(KEY, asset(APP, ALL_WEB))
        await asyncio.sleep(1)
        assert len(stage.asked) == 2, "the answer is believed for a while"
        due = stage.target_rights.recheck_at(KEY)
        assert due is not None
        await asyncio.sleep(due - stage.clock.monotonic())
        stage.target_rights.denied(KEY, asset(APP, ALL_WEB))
        await asyncio.sleep(1)
        assert stage.target_rights.denied(KEY, asset(APP, ALL_WEB)) == (ALL_WEB,)
        assert stage.told == [KEY, KEY]

    tell(story)


def test_a_changed_asset_is_asked_about_at_once_and_the_old_answer_does_not_count_for_it() -> None:
    async def story(stage: Stage) -> None:
        stage.target_rights.denied(KEY, asset(APP))
        await asyncio.sleep(1)
        other = Target(api_version="v1", kind="ConfigMap", name="other")
        assert stage.target_rights.denied(KEY, asset(other, generation=2)) is None
        await asyncio.sleep(1)
        assert stage.target_rights.denied(KEY, asset(other, generation=2)) == (other,)

    tell(story)


def test_after_a_start_those_who_were_asked_about_before_have_time() -> None:
    async def story(stage: Stage) -> None:
        known = asset(APP)
        conditions = set_condition(
            [], "TargetsPermitted", "True", "Permitted", "", now=stage.clock.now(), observed_generation=1
        )
        known = known.model_copy(update={"status": AssetStatus(conditions=conditions)})
        assert stage.target_rights.denied(KEY, known) is None
        await asyncio.sleep(1)
        assert stage.asked == []
        due = stage.target_rights.recheck_at(KEY)
        assert due is not None
        assert due - stage.clock.monotonic() <= ASKED_EVERY

    tell(story)


def test_nobody_is_asked_about_where_nobody_is_recorded() -> None:
    async def story(stage: Stage) -> None:
        assert stage.target_rights.denied(KEY, asset(APP, setter=None)) is None
        await asyncio.sleep(1)
        assert stage.asked == []
        assert stage.target_rights.recheck_at(KEY) is None

    tell(story)
