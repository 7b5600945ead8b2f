"""Leases that stay when they are free, as leader elections need them."""

from __future__ import annotations

import pytest

from assetlock.core.decide import decide
from tests.core.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app")
    world.make_target("app")
    world.settle()
    world.make_free()
    return world


def test_a_lease_that_was_made_free_stays_and_can_be_taken(world: World) -> None:
    assert world.settle() == []
    assert world.take("elector")
    world.settle()
    assert world.leases[0]["metadata"]["annotations"]["assetlock.dev/token"] == "1"
    assert world.stamped_users("app") == ["elector"]


def test_an_expired_one_is_set_free_and_the_fence_goes(world: World) -> None:
    world.take("elector", seconds=15)
    world.settle()
    world.pass_time(16)
    world.settle()
    assert world.leases[0]["spec"]["holderIdentity"] == ""
    assert world.leases[0]["metadata"]["annotations"] == {"assetlock.dev/keep": "true"}
    assert world.stamped_users("app") == []
    assert world.take("another")


def test_a_waiting_lock_takes_it_and_leaves_it_free_and_kept(world: World) -> None:
    world.take("elector", seconds=15)
    world.ask("first", "alice", wait="1h", ttl="1h")
    world.settle()
    assert world.state("first") == "Pending"
    world.pass_time(16)
    world.settle()
    assert world.state("first") == "Held"
    assert not world.take("another")
    world.withdraw("first")
    world.settle()
    assert world.take("another")
    world.settle()
    assert world.leases[0]["metadata"]["annotations"]["assetlock.dev/token"] == "3"


def test_one_that_is_free_is_not_written_again_and_again(world: World) -> None:
    world.take("elector", seconds=15)
    world.pass_time(16)
    world.settle()
    assert decide(world.observe()).writes == ()
