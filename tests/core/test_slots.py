"""Assets with room for several: readers and writers, Leases made by hand, and a capacity that changes."""

from __future__ import annotations

import pytest

from assetlock.core import decision as d
from assetlock.core.decide import decide
from tests.core.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app", capacity=3)
    world.make_target("app")
    world.settle()
    return world


def read(world: World, *names: str, wait: str = "1h") -> None:
    for name in names:
        world.ask(name, name, mode="Shared", wait=wait)
        world.settle()


def held(world: World) -> list[str]:
    return sorted(name for name in world.locks if world.state(name) == "Held")


def holders(world: World) -> list[tuple[str, list[int], int]]:
    assert world.asset is not None
    return [(h["identity"], h["slots"], h["fencingToken"]) for h in world.asset["status"]["holders"]]


def why(world: World, name: str) -> dict[str, str]:
    conditions = world.locks[name]["status"]["conditions"]
    return next(c for c in conditions if c["type"] == "Settled")


def said_of_leases(world: World) -> tuple[str, str] | None:
    """Status and message of what the Asset says of Leases that hold nothing, if it says anything."""
    assert world.asset is not None
    conditions = world.asset["status"].get("conditions", [])
    return next(((c["status"], c["message"]) for c in conditions if c["type"] == "Overcommitted"), None)


def test_as_many_readers_hold_as_there_are_slots_and_all_stand_in_the_stamp(world: World) -> None:
    read(world, "ann", "bob", "cy", "dee")
    assert held(world) == ["ann", "bob", "cy"]
    assert holders(world) == [("ann", [0], 1), ("bob", [1], 2), ("cy", [2], 3)]
    assert world.stamped_users("app") == ["ann", "bob", "cy"]
    assert world.state("dee") == "Pending"


def test_the_next_reader_gets_the_slot_that_came_free_in_one_write(world: World) -> None:
    read(world, "ann", "bob", "cy", "dee")
    world.withdraw("bob")
    writes = world.settle()
    assert isinstance(writes[0], d.ReplaceLease)
    assert holders(world) == [("ann", [0], 1), ("cy", [2], 3), ("dee", [1], 4)]
    assert world.stamped_users("app") == ["ann", "cy", "dee"]


def test_who_leaves_is_out_of_the_stamp_and_the_others_stay(world: World) -> None:
    read(world, "ann", "bob", "cy")
    world.withdraw("cy")
    world.settle()
    assert world.stamped_users("app") == ["ann", "bob"]
    assert held(world) == ["ann", "bob"]


def test_nobody_is_taken_out_of_a_stamp_before_the_asset_was_read_live(world: World) -> None:
    read(world, "ann", "bob")
    world.withdraw("bob")
    assert world.asset is not None
    for expected in ("DeleteLease", "WriteAssetStatus", "PatchTarget"):
        decision = decide(world.observe())
        assert [type(write).__name__ for write in decision.writes] == [expected]
        if expected == "PatchTarget":
            assert decision.confirm == (d.ConfirmAsset(world.asset["metadata"]["resourceVersion"]),)
        for write in decision.writes:
            world.apply(write)


def test_a_writer_takes_every_slot_before_it_holds(world: World) -> None:
    world.ask("wes", "wes")
    writes = world.settle()
    assert [type(write).__name__ for write in writes[:3]] == ["CreateLease"] * 3
    assert sorted(world.leases) == [0, 1, 2]
    assert holders(world) == [("wes", [0, 1, 2], 1)]
    assert not world.hand_make("job", slot=2), "a Lease made by hand is refused by the name that is taken"


def test_a_writer_collects_what_comes_free_and_no_reader_overtakes_it(world: World) -> None:
    read(world, "ann", "bob")
    world.ask("wes", "wes", wait="1h")
    world.settle()
    read(world, "cy")
    assert sorted(world.leases) == [0, 1, 2], "the free slot is kept for the writer"
    world.withdraw("ann")
    world.settle()
    assert held(world) == ["bob"]
    world.withdraw("bob")
    world.settle()
    assert held(world) == ["wes"]
    world.withdraw("wes")
    world.settle()
    assert held(world) == ["cy"]


def test_a_writer_that_does_not_wait_fails_at_once_and_keeps_nothing(world: World) -> None:
    read(world, "ann")
    world.ask("wes", "wes")
    world.settle()
    assert world.state("wes") == "Failed"
    assert why(world, "wes")["reason"] == "Locked"
    assert list(world.leases) == [0]


def test_a_writer_that_gives_up_leaves_the_slots_it_had_collected(world: World) -> None:
    read(world, "ann")
    world.ask("wes", "wes", wait="1m")
    world.settle()
    world.pass_time(62)
    world.settle()
    assert world.state("wes") == "Failed"
    assert list(world.leases) == [0]


def test_collecting_does_not_use_up_the_time_to_hold(world: World) -> None:
    read(world, "ann")
    world.ask("wes", "wes", wait="1h", ttl="1m")
    world.settle()
    for _ in range(3):
        world.pass_time(50)
        world.settle()
    world.withdraw("ann")
    world.settle()
    assert held(world) == ["wes"]
    assert world.locks["wes"]["status"]["expireTime"] == "2026-03-28T12:03:30Z"


def test_a_writer_that_crashed_in_the_middle_goes_on_where_it_was(world: World) -> None:
    world.ask("wes", "wes")
    claim = decide(world.observe()).writes[1]
    world.apply(claim)
    world.settle()
    assert holders(world) == [("wes", [0, 1, 2], 1)]


def test_of_two_that_collect_only_the_first_in_line_keeps_on(world: World) -> None:
    world.ask("wes", "wes", wait="1h")
    first = decide(world.observe()).writes[0]
    world.withdraw("wes")
    world.ask("val", "val", wait="1h")
    second = decide(world.observe()).writes[1]
    world.ask("wes", "wes", wait="1h")
    assert isinstance(first, d.CreateLease)
    uid = world.locks["wes"]["metadata"]["uid"]
    first.body["metadata"]["annotations"]["assetlock.dev/acquisition"] = uid
    world.apply(first)
    world.apply(second)
    world.settle()
    assert held(world) == ["val"]
    assert world.state("wes") == "Pending"


def test_a_writer_that_loses_one_of_its_leases_has_lost_the_lock(world: World) -> None:
    world.ask("wes", "wes")
    world.settle()
    world.drop_lease(1)
    world.settle()
    assert world.state("wes") == "Revoked"
    assert world.leases == {}


def test_a_lease_made_by_hand_takes_one_slot(world: World) -> None:
    assert world.hand_make("job", slot=1)
    world.settle()
    read(world, "ann", "bob", "cy")
    assert held(world) == ["ann", "bob"]
    assert world.stamped_users("app") == ["job", "ann", "bob"]


@pytest.mark.parametrize("slot", [3, 63])
def test_a_lease_made_by_hand_beyond_the_capacity_holds_nothing(world: World, slot: int) -> None:
    world.hand_make("job", slot=slot)
    world.settle()
    assert world.holders() == []
    assert world.stamped_users("app") == []
    read(world, "ann")
    assert held(world) == ["ann"]


def test_capacity_lowered_throws_nobody_out_and_grants_nothing_until_it_fits(world: World) -> None:
    read(world, "ann", "bob", "cy", "dee")
    world.resize(1)
    world.settle()
    assert held(world) == ["ann", "bob", "cy"]
    world.withdraw("ann")
    world.withdraw("bob")
    world.settle()
    assert held(world) == ["cy"]
    world.withdraw("cy")
    world.settle()
    assert held(world) == ["dee"]


def test_who_needs_all_slots_does_not_overtake_who_needs_one_that_is_free_but_too_many(world: World) -> None:
    read(world, "ann", "bob", "cy", "dee")
    world.pass_time(1)
    world.ask("writer", "eve", wait="1h")
    world.resize(1)
    world.withdraw("ann")
    world.withdraw("bob")
    world.settle()
    assert held(world) == ["cy"]
    assert {lease["spec"]["holderIdentity"].partition("_")[0] for lease in world.leases.values()} == {"cy"}
    world.withdraw("cy")
    world.settle()
    assert held(world) == ["dee"]


def test_a_lease_made_by_hand_in_a_slot_that_comes_while_a_writer_holds_is_in_vain(world: World) -> None:
    world.ask("writer", "eve", wait="1h")
    world.settle()
    assert held(world) == ["writer"]
    world.resize(4)
    assert world.hand_make("job", slot=3)
    world.settle()
    assert world.stamped_users("app") == ["eve"]
    assert len(holders(world)) == 1


def test_a_lease_made_by_hand_waits_in_vain_while_more_hold_than_fit(world: World) -> None:
    read(world, "ann", "bob", "cy")
    world.resize(2)
    world.withdraw("ann")
    world.settle()
    world.hand_make("job", slot=0)
    world.settle()
    assert held(world) == ["bob", "cy"]
    assert world.stamped_users("app") == ["bob", "cy"]
    assert said_of_leases(world) == (
        "True",
        "Lease asset.vm-1 of job holds nothing before others have left: there is no room for one more",
    )
    world.withdraw("cy")
    world.settle()
    assert world.stamped_users("app") == ["bob", "job"]
    assert said_of_leases(world) == ("False", "")


def test_a_lease_beyond_the_capacity_is_told_of_once_for_as_long_as_it_is_there(world: World) -> None:
    world.resize(2)
    world.settle()
    assert said_of_leases(world) is None
    world.hand_make("job", slot=3)
    told = [happening for write in world.settle() for happening in write.events]
    assert [(each.reason, each.warning) for each in told] == [("LeaseHoldsNothing", True)]
    assert said_of_leases(world) == (
        "True",
        "Lease asset-3.vm-1 of job holds nothing: the asset's capacity is 2, so there is no slot 3; delete the Lease",
    )
    assert held(world) == [] and world.stamped_users("app") == []
    world.renew_by_hand(slot=3)
    assert not [happening for write in world.settle() for happening in write.events]
    world.drop_lease(slot=3)
    world.settle()
    assert said_of_leases(world) == ("False", "")


def test_capacity_raised_is_granted_on_at_once(world: World) -> None:
    read(world, "ann", "bob", "cy", "dee")
    world.resize(4)
    world.settle()
    assert held(world) == ["ann", "bob", "cy", "dee"]


def test_capacity_raised_under_a_writer_goes_to_the_writer_with_no_time_added(world: World) -> None:
    world.ask("wes", "wes", ttl="1m")
    world.settle()
    read(world, "ann")
    world.pass_time(30)
    world.resize(5)
    world.settle()
    assert held(world) == ["wes"]
    assert sorted(world.leases) == [0, 1, 2, 3, 4]
    assert world.locks["wes"]["status"]["expireTime"] == "2026-03-28T12:01:00Z"
    world.withdraw("wes")
    world.settle()
    assert held(world) == ["ann"]


def test_one_write_renews_all_leases_of_a_writer(world: World) -> None:
    world.ask("wes", "wes", ttl="1m")
    world.settle()
    world.pass_time(40)
    world.renew_by_hand()
    world.pass_time(40)
    world.settle()
    assert held(world) == ["wes"]
    world.pass_time(21)
    world.settle()
    assert world.state("wes") == "Expired"
    assert world.leases == {}


def test_a_shorter_ttl_counts_for_all_leases_of_a_writer(world: World) -> None:
    world.ask("wes", "wes", ttl="1h")
    world.settle()
    world.locks["wes"]["spec"]["ttl"] = "1m"
    world._touch(world.locks["wes"])
    world.settle()
    assert world.locks["wes"]["status"]["expireTime"] == "2026-03-28T12:01:00Z"


def test_a_shared_lock_on_an_asset_with_one_slot_is_the_only_holder() -> None:
    world = World()
    world.make_asset()
    read(world, "ann", "bob")
    assert held(world) == ["ann"]


def test_a_lease_that_says_it_is_somebody_elses_acquisition_is_one_of_its_own(world: World) -> None:
    read(world, "ann")
    world.hand_make("mallory", slot=1)
    uid = world.locks["ann"]["metadata"]["uid"]
    world.leases[1]["metadata"]["annotations"]["assetlock.dev/acquisition"] = uid
    world.settle()
    assert holders(world) == [("ann", [0], 1), ("mallory", [1], 2)]


@pytest.mark.parametrize(("mode", "lost"), [("Exclusive", 0), ("Shared", None)])
def test_who_has_no_place_on_an_asset_that_was_made_anew_does_not_hold(
    world: World, mode: str, lost: int | None
) -> None:
    read(world, "other")
    world.ask("first", "first", mode=mode, wait="1h")
    world.settle()
    world.withdraw("other")
    world.settle()
    assert held(world) == ["first"]
    if lost is not None:
        world.drop_lease(lost)
    world.make_asset("app", capacity=1)
    decision = decide(world.observe())
    assert decision.confirm[0] == d.ConfirmAsset(world.asset["metadata"]["resourceVersion"])
    read(world, "second")
    assert held(world) == ["second"]
    assert why(world, "first")["reason"] == "AssetRemade"
    assert world.stamped_users("app") == ["second"]


def test_who_has_a_place_on_an_asset_that_was_made_anew_holds_on(world: World) -> None:
    read(world, "first", "second")
    world.make_asset("app", capacity=2)
    world.settle()
    assert held(world) == ["first", "second"]
    assert world.stamped_users("app") == ["first", "second"]
