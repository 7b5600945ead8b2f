"""Ending a lock by hand, without an operator: the same steps in the same order, and nothing besides."""

from __future__ import annotations

import pytest

from assetlock.core import decision as d
from assetlock.core.decide import decide
from assetlock.core.observation import Revocation
from tests.core.world import World


@pytest.fixture
def world() -> World:
    """Alice holds the lock, bob and carol wait for it, and carol does not wait any longer."""
    world = World()
    world.make_asset("app", "db")
    world.make_target("app")
    world.make_target("db")
    world.ask("first", "alice")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.ask("third", "carol")
    return world


def kinds(writes: list[d.Write]) -> list[str]:
    return [type(write).__name__ for write in writes]


def test_the_assetlock_ends_first_then_the_lease_goes_then_holder_and_stamps(world: World) -> None:
    steps = ["WriteLockStatus", "DeleteLease", "WriteAssetStatus", "PatchTarget", "PatchTarget"]
    assert kinds(world.revoke()) == steps
    assert world.state("first") == "Revoked"
    assert world.lease is None
    assert world.asset is not None
    assert world.asset["status"]["holders"] == []
    assert world.stamped_users("app") == world.stamped_users("db") == []


def test_it_says_who_did_it(world: World) -> None:
    world.revoke("root")
    condition = next(c for c in world.locks["first"]["status"]["conditions"] if c["type"] == "Settled")
    assert (condition["reason"], condition["message"]) == ("Revoked", "revoked by root")


def test_those_who_wait_are_neither_granted_nor_given_up(world: World) -> None:
    world.revoke()
    assert world.state("second") == "Pending"
    assert world.state("third") is None


def test_the_operator_goes_on_with_the_next_token(world: World) -> None:
    world.revoke()
    world.settle()
    assert world.state("second") == "Held"
    assert world.locks["second"]["status"]["fencingToken"] == 2


def test_a_lease_made_by_hand_goes_too() -> None:
    world = World()
    world.make_asset("app")
    world.make_target("app")
    world.hand_make("job")
    world.settle()
    assert kinds(world.revoke()) == ["DeleteLease", "WriteAssetStatus", "PatchTarget"]


def test_one_who_got_the_lock_meanwhile_keeps_it(world: World) -> None:
    """An operator ran after all, and granted it to the next before the second look."""
    world.withdraw("first")
    world.settle()
    assert world.state("second") == "Held"
    world.revocation = Revocation("root", frozenset({"the one of the first"}))
    assert decide(world.observe()).writes == ()


def test_all_who_share_the_asset_go_and_one_who_collects_its_slots_waits_on() -> None:
    world = World()
    world.make_asset("app", capacity=3)
    world.make_target("app")
    world.ask("reader", "alice", mode="Shared")
    world.settle()
    world.hand_make("job", slot=1)
    world.settle()
    world.ask("writer", "bob", wait="1h")
    world.settle()
    assert world.revoke()
    assert world.state("reader") == "Revoked"
    assert world.holders() == []
    assert world.stamped_users("app") == []
    assert world.state("writer") == "Pending"
    world.settle()
    assert world.state("writer") == "Held"


def test_its_delay_keeps_the_lease_from_everybody_but_no_fence_that_nobody_would_take_down(
    world: World,
) -> None:
    assert world.asset is not None
    world.asset["spec"]["lockDelay"] = "5m"
    steps = ["WriteLockStatus", "ReplaceLease", "WriteAssetStatus", "PatchTarget", "PatchTarget"]
    assert kinds(world.revoke()) == steps
    assert not world.hand_make("other")
    assert world.stamped_users("app") == []
    assert world.revoke() == [], "once more changes nothing"
    world.settle()
    assert world.state("second") == "Pending"
    assert world.stamped_users("app") == ["assetlock:lock-delay"]
    world.pass_time(302)
    world.settle()
    assert world.state("second") == "Held"
