"""The real controller in whole schedules: hundreds of seeds, and a few stories told in full."""

import asyncio
import dataclasses
import itertools
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from assetlock.controller.controller import RELIST_EVERY, Controller
from assetlock.kube.resources import ASSETLOCKS, ASSETS, CONFIG_MAPS
from tests.sim import policies, records
from tests.sim.admission import Attributes, Plugin, User
from tests.sim.clients import NAMESPACE, Board, send
from tests.sim.kinds import ASSETS as SERVED_ASSETS
from tests.sim.plan import Plan
from tests.sim.shrinking import Schedule
from tests.sim.story import Story, play, schedule_of, tell
from tests.sim.world import Broken, World

CALM = Plan(
    seconds=0.0,
    roughness=0.0,
    stale_watches=False,
    slow_commits=0.0,
    elected=True,
    crashes=0,
    freezes=0,
    skews=(0.0, 0.0),
    jumps=0,
    lockers=0,
    jobs=0,
    shared_target=False,
    meddling=False,
)
ROOT = pathlib.Path(__file__).parents[2]
PORTION = 100


@pytest.mark.parametrize("start", range(0, 400, PORTION))
def test_nothing_that_must_never_be_is_in_these_schedules(start: int) -> None:
    """As `make sim` plays them, in a process of their own: in this one sets are walked in another order each time."""
    command = [sys.executable, "-m", "tests.sim.run", "--seeds", str(PORTION), "--start", str(start)]
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if played.returncode:
        pytest.fail(played.stdout + played.stderr, pytrace=False)


def test_a_schedule_can_be_had_again_by_its_seed() -> None:
    eventful = next(s for s in itertools.count() if Plan.of(s).roughness and Plan.of(s).freezes)
    first, second = (play(schedule_of(eventful)).told(last=None) for _ in range(2))
    assert first == second


def test_the_judges_see_a_write_that_the_fence_should_have_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fence_trials(attributes: Attributes) -> None:
        if attributes.dry_run:
            policies._fence(attributes)

    monkeypatch.setattr(policies, "plugins", lambda: [Plugin(validate=fence_trials)])
    with pytest.raises(Broken, match=r"wrote \w+ while"):
        for seed in range(20):
            play(Schedule(seed, dataclasses.replace(CALM, seconds=10.0, lockers=2)))


class Telling:
    """A world, calm unless it is told otherwise, with one asset and one target, and a user who asks for locks."""

    def __init__(self, world: World, plan: Plan = CALM) -> None:
        self.world = world
        self.story = Story(world, plan, targets=["config"])
        self.board = Board(world.server.store)

    async def begin(self) -> None:
        await self.story.begin()
        await asyncio.sleep(5)

    async def ask(self, name: str, **spec: Any) -> None:
        lock = {"apiVersion": "assetlock.dev/v1alpha1", "kind": "AssetLock", "metadata": {"name": name}}
        client = self.world.client(User(f"user-{name}"))
        await send(client, "POST", ASSETLOCKS.path(NAMESPACE), {**lock, "spec": {"assetName": "vm", **spec}})

    async def withdraw(self, name: str) -> None:
        await send(self.world.client(User(f"user-{name}")), "DELETE", ASSETLOCKS.path(NAMESPACE, name))

    def state(self, name: str) -> str | None:
        lock = self.board.get("assetlocks", name)
        return records.state_of(lock) if lock else None

    async def until(self, name: str, state: str, seconds: float) -> float:
        """Wait for a state; gives how long that took."""
        began = self.world.loop.time()
        came = await self.board.until(lambda: self.state(name) == state, seconds)
        assert came, f"{name} is {self.state(name)} after {seconds}s, not {state}"
        return self.world.loop.time() - began

    def leader(self) -> int:
        """Which of the operators leads."""
        version = next(
            obj
            for key, obj in ((c.key, c.obj) for c in reversed(self.world.commits))
            if key.name == "assetlock-controller"
        )
        return int(version["spec"]["holderIdentity"].split("_")[0].removeprefix("operator-"))


def test_a_whole_quiet_life_of_a_lock_with_one_target_is_nine_writes() -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        before = len(world.commits)
        await told.ask("a", ttl="1h")
        await told.until("a", "Held", 1)
        await asyncio.sleep(60)
        await told.withdraw("a")
        await asyncio.sleep(60)
        writes = [
            f"{change.operation} {change.key.plural}{'/' if change.subresource else ''}{change.subresource}"
            for change in world.commits[before:]
            if change.key.namespace == NAMESPACE
        ]
        assert writes == [
            "CREATE assetlocks",
            "CREATE leases",
            "UPDATE assets/status",
            "UPDATE configmaps",
            "UPDATE assetlocks/status",
            "DELETE assetlocks",
            "DELETE leases",
            "UPDATE assets/status",
            "UPDATE configmaps",
        ]

    tell(story, CALM, seed="nine")


def test_with_older_definitions_nothing_is_announced_and_nothing_is_tried_without_pause() -> None:
    def prune(attributes: Attributes) -> dict[str, Any] | None:
        if attributes.served is not SERVED_ASSETS or attributes.new is None or "status" not in attributes.new:
            return None
        status = {key: value for key, value in attributes.new["status"].items() if key != "fencedPlaces"}
        return {**attributes.new, "status": status}

    async def story(world: World) -> None:
        world.server.writer.plugins.append(Plugin(mutate=prune))
        told = Telling(world)
        await told.begin()
        await told.ask("a", ttl="1h", wait="1h")
        requests = [process.client.requests for _, process in told.story.operators]
        await asyncio.sleep(120)
        assert told.state("a") != "Held"
        later = [process.client.requests for _, process in told.story.operators]
        assert sum(later) - sum(requests) < 10 * 120

    tell(story, CALM, seed="pruned")


def test_a_waiter_has_the_lock_within_a_second_of_the_deadline_of_one_that_expired() -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        await told.ask("a", ttl="10s")
        await told.until("a", "Held", 1)
        await told.ask("b", wait="1m")
        taken = await told.until("b", "Held", 15)
        assert 10.9 < taken < 10 + 1 + 1
        assert told.state("a") == "Expired"

    tell(story, CALM, seed="deadline")


def test_with_its_leader_killed_a_lock_that_expired_is_granted_on_within_five_seconds() -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        await told.ask("a", ttl="2s")
        await told.until("a", "Held", 1)
        await told.ask("b", wait="1m")
        await asyncio.sleep(2.9)
        _, process = told.story.operators[told.leader()]
        told.story.judges.trouble_at = world.loop.time()
        await process.restart()
        assert await told.until("b", "Held", 10) < 5

    tell(story, CALM, seed="killed")


def test_a_waiter_gets_the_lock_at_once_when_it_is_given_back() -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        await told.ask("a", ttl="1h")
        await told.until("a", "Held", 1)
        await told.ask("b", wait="1m")
        await asyncio.sleep(1)
        await told.withdraw("a")
        assert await told.until("b", "Held", 1) < 0.2

    tell(story, CALM, seed="hand-over")


def test_those_who_waited_before_a_start_are_found_by_the_first_list_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Controller, "event", lambda *_: None)

    async def story(world: World) -> None:
        told = Telling(world)
        beginning = asyncio.create_task(told.begin())
        await told.board.until(lambda: told.board.get("assets", "vm") is not None, 1)
        await told.ask("a", wait="1m")
        await told.until("a", "Held", 2)
        await beginning

    tell(story, CALM, seed="start")


def test_a_deletion_that_no_watch_tells_of_is_noticed_by_the_next_whole_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told_by_watches = Controller.event

    def deaf(controller: Controller, kind: str, event_type: str | None, raw: dict[str, Any]) -> None:
        if event_type != "DELETED":
            told_by_watches(controller, kind, event_type, raw)

    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        await told.ask("a", ttl="1h")
        await told.until("a", "Held", 1)
        await told.ask("b", wait="5m")
        await told.withdraw("a")
        await told.until("b", "Held", RELIST_EVERY + 2)

    monkeypatch.setattr(Controller, "event", deaf)
    tell(story, CALM, seed="deaf")


def test_a_conflict_is_read_before_the_next_decision_and_does_not_wait_for_a_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told_by_watches = Controller.event

    def deaf(controller: Controller, kind: str, event_type: str | None, raw: dict[str, Any]) -> None:
        if kind != "Asset":
            told_by_watches(controller, kind, event_type, raw)

    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        await told.ask("a", ttl="3s")
        await told.until("a", "Held", 1)
        merge = {"content-type": "application/merge-patch+json", "accept": "application/json"}
        patch = {"metadata": {"labels": {"changed": "unseen"}}}
        await send(world.client(User("operator-0")), "PATCH", ASSETS.path(NAMESPACE, "vm"), patch, merge)
        await told.ask("b", wait="1m")
        assert await told.until("b", "Held", 6) < 5

    monkeypatch.setattr(Controller, "event", deaf)
    tell(story, CALM, seed="conflict")


def test_strangers_are_refused_from_the_announcement_to_the_end_and_welcome_afterwards() -> None:
    async def story(world: World) -> None:
        told = Telling(world)
        await told.begin()
        stranger = world.client(User("stranger"))

        async def write() -> int:
            merge = {"content-type": "application/merge-patch+json", "accept": "application/json"}
            path = CONFIG_MAPS.path(NAMESPACE, "config")
            reply = await send(stranger, "PATCH", path, {"data": {"at": str(world.loop.time())}}, merge)
            assert reply is not None
            return reply.status

        assert await write() == 200
        await told.ask("a", ttl="1h")
        await told.until("a", "Held", 1)
        assert await write() == 403
        await told.withdraw("a")
        await asyncio.sleep(1)
        assert await write() == 200

    tell(story, CALM, seed="strangers")
