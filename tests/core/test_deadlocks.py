"""Which AssetLock gives way when locks wait for each other, as it is decided from the locks alone."""

from __future__ import annotations

from typing import Any

import pytest

from assetlock.core.deadlocks.decide import decide_waits
from assetlock.core.decision import Decision, WriteLockStatus
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from tests.core.town import Town
from tests.core.world import NAMESPACE


@pytest.fixture
def town() -> Town:
    return Town()


def decided(town: Town) -> Decision:
    locks = [AssetLock.model_validate(raw) for raw in town.locks.values()]
    assets = [Asset.model_validate(world.asset) for world in town.worlds.values() if world.asset]
    return decide_waits(town.worlds["db"].now, NAMESPACE, locks, assets)


def victim(town: Town) -> tuple[str, str]:
    """The lock that is to fail, and what it is told; applied to the town."""
    [write] = decided(town).writes
    assert isinstance(write, WriteLockStatus)
    town.apply("", write)
    name = write.body["metadata"]["name"]
    return name, town.reason(name)


def cross(town: Town, **spec: Any) -> None:
    """Alice has db and wants web, bob has web and wants db."""
    alice, bob = {"holder": {"username": "alice"}, **spec}, {"holder": {"username": "bob"}}
    town.ask_one("a1", "db", **alice)
    town.ask_one("b1", "web", **bob)
    town.settle()
    town.ask_one("a2", "web", wait="10m", **alice)
    town.pass_time(2)
    town.ask_one("b2", "db", wait="10m", **bob)
    town.settle()


def test_the_younger_of_two_that_wait_for_each_other_fails_and_tells_the_cycle(town: Town) -> None:
    cross(town)
    assert victim(town) == (
        "b2",
        "Deadlock: bob (b2) waits for asset db, which alice (a1) has; alice (a2) waits for asset web, which "
        "bob (b1) has; the youngest of those who wait gives way",
    )
    town.settle()
    assert decided(town).writes == ()
    town.withdraw("b1")
    town.settle()
    assert town.state("a2") == "Held"


def test_other_runs_of_the_same_user_are_others(town: Town) -> None:
    cross(town, holderId="build-7")
    assert victim(town)[0] == "b2"
    other = Town()
    cross(other)
    other.locks["a2"]["spec"]["holderId"] = "build-8"
    assert decided(other).writes == ()


def test_what_was_decided_from_is_read_again_first(town: Town) -> None:
    cross(town)
    assert {each.name for each in decided(town).confirm} == {"a1", "a2", "b1", "b2"}  # type: ignore[union-attr]


def test_a_window_holds_no_longer_for_waiting_elsewhere(town: Town) -> None:
    cross(town)
    for name in ("b1", "b2"):
        town.locks[name]["spec"]["holder"]["username"] = "assetlock:window:freeze"
    assert decided(town).writes == ()


def test_a_lock_over_several_assets_may_be_in_the_way_of_its_own_holder(town: Town) -> None:
    town.ask_one("a1", "db", holder={"username": "alice"})
    town.settle()
    town.ask("both", "db", "web", wait="10m")
    town.settle()
    town.pass_time(2)
    town.ask_one("a2", "web", wait="10m", holder={"username": "alice"})
    town.settle()
    name, told = victim(town)
    assert name == "a2"
    assert "which user-both (both) is ahead of it in the queue of" in told
