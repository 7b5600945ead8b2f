"""A write that can't be made holds up what must follow it, and nothing else."""

from __future__ import annotations

import pytest

from assetlock.core.stuck import Stuck, Subject, target, unseen
from tests.core.world import ASSET, NAMESPACE, World

REFUSED = Stuck("no, says somebody's policy")
LATE = Stuck("no answer yet", failed=False)
LEASE = Subject("Lease", NAMESPACE, f"asset.{ASSET}")
STATUS = Subject("Asset", NAMESPACE, ASSET)
STAMP = target("v1", "ConfigMap", NAMESPACE, "app")
TARGETS = unseen(NAMESPACE, ASSET)
STEPS = [LEASE, STATUS, STAMP, TARGETS]


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app", "db")
    world.make_target("app")
    world.make_target("db")
    world.settle()
    return world


def settled_reason(world: World, name: str) -> tuple[str, str]:
    conditions = world.locks[name]["status"]["conditions"]
    (found,) = (each for each in conditions if each["type"] == "Settled")
    return found["reason"], found["message"]


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_announced_before_a_step_that_can_not_be_made(world: World, step: Subject) -> None:
    world.stuck = {step: REFUSED}
    world.ask("first", "alice", wait="1h")
    world.settle()
    assert world.state("first") == "Pending"
    reason, message = settled_reason(world, "first")
    assert reason == "WriteFailed"
    assert REFUSED.why in message
    world.stuck = {}
    world.settle()
    assert world.state("first") == "Held"


@pytest.mark.parametrize("step", STEPS)
def test_a_lock_that_does_not_wait_fails_at_once_and_is_never_granted(world: World, step: Subject) -> None:
    world.stuck = {step: REFUSED}
    world.ask("first", "alice")
    world.settle()
    assert world.state("first") == "Failed"
    world.stuck = {}
    world.settle()
    assert world.state("first") == "Failed"
    assert not world.leases
    assert not world.stamped_users("app")


@pytest.mark.parametrize("step", STEPS)
def test_a_late_answer_is_waited_for_also_by_a_lock_that_does_not_wait(world: World, step: Subject) -> None:
    world.stuck = {step: LATE}
    world.ask("first", "alice")
    world.settle()
    assert world.state("first") == "Pending"
    world.stuck = {}
    world.settle()
    assert world.state("first") == "Held"


@pytest.mark.parametrize("step", STEPS)
def test_a_wait_that_is_over_ends_whatever_is_stuck(world: World, step: Subject) -> None:
    world.stuck = {step: REFUSED}
    world.ask("first", "alice", wait="5s")
    world.settle()
    world.pass_time(6)
    world.settle()
    assert world.state("first") == "Failed"
    reason, message = settled_reason(world, "first")
    assert reason == "WaitTimeout"
    assert REFUSED.why in message


def test_the_other_targets_are_stamped_where_one_can_not_be(world: World) -> None:
    world.stuck = {STAMP: REFUSED}
    world.ask("first", "alice", wait="1h")
    world.settle()
    assert world.stamped_users("db") == ["alice"]
    assert world.state("first") == "Pending"


def test_a_lock_whose_end_can_not_be_written_keeps_its_lease_and_its_stamps(world: World) -> None:
    world.ask("first", "alice", ttl="10s")
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.stuck = {Subject("AssetLock", NAMESPACE, "first"): REFUSED}
    world.pass_time(20)
    world.settle()
    assert world.stamped_users("app") == ["alice"]
    assert world.state("second") == "Pending"
    world.stuck = {}
    world.settle()
    assert (world.state("first"), world.state("second")) == ("Expired", "Held")


def test_stamps_stay_until_the_lease_is_released(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    world.stuck = {LEASE: REFUSED}
    del world.locks["first"]
    world.settle()
    assert world.stamped_users("app") == ["alice"]
    conditions = {c["type"]: c for c in world.asset["status"]["conditions"]} if world.asset else {}
    assert conditions["Ready"]["reason"] == "WriteFailed"
    assert REFUSED.why in conditions["Ready"]["message"]
    world.stuck = {}
    world.settle()
    assert not world.stamped_users("app")
