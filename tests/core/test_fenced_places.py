"""Where an asset's stamps may be, as it tells whoever comes next."""

from __future__ import annotations

import dataclasses

import pytest

from assetlock.core import decision as d
from assetlock.core.observation import ObservedTarget
from assetlock.core.situation import Situation
from assetlock.core.status import fenced_places
from assetlock.model.asset import MOST_PLACES, Target
from tests.core.world import NAMESPACE, World


@pytest.fixture
def world() -> World:
    """An asset that stands for a ConfigMap and is held; there is a Secret too."""
    world = World(secret={"password"})
    world.make_asset("app")
    world.make_target("app")
    world.make_target("password")
    world.ask("first", "alice", ttl="1h")
    world.settle()
    return world


def listed(world: World) -> list[str]:
    assert world.asset is not None
    return [place["kind"] for place in world.asset["status"]["fencedPlaces"]]


def kinds(writes: list[d.Write]) -> list[str]:
    return [type(write).__name__ for write in writes]


def test_the_record_of_a_holder_lists_where_targets_are_also_those_that_do_not_exist_yet() -> None:
    world = World(secret={"password"})
    world.make_asset("app", "password")
    world.make_target("app")
    world.ask("first")
    assert kinds(world.settle())[:3] == ["CreateLease", "WriteAssetStatus", "PatchTarget"]
    assert world.asset is not None
    assert world.asset["status"]["fencedPlaces"] == [
        {"apiVersion": "v1", "kind": kind, "namespace": NAMESPACE} for kind in ("ConfigMap", "Secret")
    ]
    world.make_target("password")
    assert kinds(world.settle())[0] == "PatchTarget", "nothing has to be written before"


def test_a_kind_that_a_locked_asset_comes_to_name_is_listed_before_it_is_stamped(world: World) -> None:
    world.retarget("app", "password")
    assert kinds(world.settle()) == ["WriteAssetStatus", "PatchTarget"]
    assert listed(world) == ["ConfigMap", "Secret"]


def test_what_a_locked_asset_has_named_is_found_by_a_process_that_starts_then(world: World) -> None:
    world.retarget("password")
    for _ in range(2):
        for write in world.decided().writes[:1]:
            world.apply(write)
    assert world.stamped_users("app") == ["alice"], "so far one target is stamped and the other still is"
    world.settle()
    assert world.stamped_users("app") == []
    assert listed(world) == ["ConfigMap", "Secret"]


def test_what_it_has_named_stays_listed_when_it_is_free_until_it_is_locked_again(world: World) -> None:
    world.retarget("password")
    world.withdraw("first")
    world.settle()
    assert listed(world) == ["ConfigMap"], "the end of a lock writes nothing for it"
    assert world.stamped_users("app") == []
    world.ask("second", "bob")
    world.settle()
    assert listed(world) == ["Secret"]


def test_a_next_lock_lists_what_is_stamped_for_the_last_one_still(world: World) -> None:
    world.withdraw("first")
    while world.decided().writes and "PatchTarget" not in kinds(list(world.decided().writes)):
        world.apply(world.decided().writes[0])
    world.retarget("password")
    world.ask("second", "bob")
    for _ in range(2):
        world.apply(world.decided().writes[0])
    assert world.stamped_users("app") == ["alice"]
    assert listed(world) == ["ConfigMap", "Secret"]


def test_a_kind_that_cannot_be_looked_at_stays_listed(world: World) -> None:
    world.retarget("password")
    world.withdraw("first")
    world.settle()
    world.problems["app"] = "ConfigMap objects can't be watched"
    world.ask("second", "bob")
    world.settle()
    assert listed(world) == ["ConfigMap", "Secret"]


def test_of_more_places_than_a_status_keeps_only_those_stay_that_are_needed(world: World) -> None:
    def with_targets(first: int, last: int) -> Situation:
        many = tuple(
            ObservedTarget(Target(api_version="v1", kind="Secret", name="password"), namespace=f"team-{n}")
            for n in range(first, last)
        )
        return Situation(dataclasses.replace(world.observe(), targets=many))

    assert len(fenced_places.fenced(with_targets(1, MOST_PLACES))) == MOST_PLACES, "one was there already"
    assert len(fenced_places.fenced(with_targets(0, MOST_PLACES))) == MOST_PLACES, "and goes for another one"
    assert {place.kind for place in fenced_places.fenced(with_targets(0, MOST_PLACES))} == {"Secret"}
