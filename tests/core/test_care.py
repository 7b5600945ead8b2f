"""Caps and care: locks that end although they are renewed, and assets kept from everybody after one ran out."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from assetlock.core.decide import decide
from assetlock.core.decision import WriteLockStatus
from assetlock.core.names import WITHHELD_ANNOTATION
from assetlock.model.times import format_time
from tests.core.world import World


@pytest.fixture
def world() -> World:
    return world_with()


def world_with(**spec: Any) -> World:
    world = World()
    world.make_asset("app", **spec)
    world.make_target("app")
    world.settle()
    return world


def let_pass(world: World, *seconds: float) -> None:
    for some in seconds:
        world.pass_time(some)
        world.settle()


def message(world: World, name: str, kind: str = "Settled") -> str:
    found = next(c for c in world.locks[name]["status"]["conditions"] if c["type"] == kind)
    return f"{found['reason']}: {found['message']}"


def test_a_lock_ends_after_its_longest_hold_however_often_it_is_renewed() -> None:
    world = world_with(maxHold="2m")
    world.ask("first", ttl="1m")
    world.settle()
    for _ in range(3):
        world.pass_time(35)
        world.renew_by_hand()
        world.settle()
    assert world.state("first") == "Held"
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T12:02:00Z"
    assert "maxHold 2m ends it then" in message(world, "first")
    world.pass_time(16)
    world.renew_by_hand()
    world.settle()
    assert world.state("first") == "Expired"


def test_a_lease_made_by_hand_has_a_longest_hold_too_whatever_it_says_of_its_beginning() -> None:
    world = world_with(maxHold="2m")
    world.hand_make("job", seconds=60)
    world.settle()
    for _ in range(4):
        assert world.lease is not None
        world.pass_time(31)
        world.renew_by_hand()
        world.lease["spec"]["acquireTime"] = world.lease["spec"]["renewTime"]
        world.settle()
    assert world.lease is None


def test_a_longest_hold_set_after_the_grant_counts_from_then_on(world: World) -> None:
    world.ask("first", ttl="1h")
    world.settle()
    world.pass_time(120)
    assert world.asset is not None
    world.asset["spec"]["maxHold"] = "1m"
    world._touch(world.asset)
    world.settle()
    assert world.state("first") == "Expired"


@pytest.mark.parametrize("end", ["expired", "by hand", "lost", "revoked", "by hand, revoked"])
def test_nobody_gets_the_lock_before_the_delay_is_over(end: str) -> None:
    world = world_with(lockDelay="5m")
    if end.startswith("by hand"):
        world.hand_make("job", seconds=60)
    else:
        world.ask("first", ttl="1m")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    if end == "lost":
        world.drop_lease()
        world.settle()
    elif end.endswith("revoked"):
        world.mark_revoked("root")
        world.settle()
        assert end.startswith("by hand") or world.state("first") == "Revoked"
    else:
        let_pass(world, 61)
    assert world.state("second") == "Pending"
    assert not world.hand_make("other")
    assert world.stamped_users("app") == ["assetlock:lock-delay"]
    assert "LockDelay: held by assetlock:lock-delay (its lockDelay) since" in message(world, "second")
    let_pass(world, 298)
    assert world.state("second") == "Pending"
    let_pass(world, 5)
    assert world.state("second") == "Held"
    assert world.stamped_users("app") == ["bob"]


def test_a_revocation_is_followed_at_once_where_there_is_no_delay() -> None:
    world = world_with()
    world.ask("first", "alice")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.mark_revoked("root")
    world.settle()
    assert (world.state("first"), world.state("second")) == ("Revoked", "Held")
    assert "revoked by root" in message(world, "first")


@pytest.mark.parametrize("delay", [None, "5m"])
def test_another_operators_clock_makes_no_delay_longer(delay: str | None) -> None:
    world = world_with(**({"lockDelay": delay} if delay else {}))
    world.ask("first", ttl="1m")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.pass_time(61)
    ended = decide(world.observe()).writes[0]
    assert isinstance(ended, WriteLockStatus)
    ahead = world.now + datetime.timedelta(minutes=27)
    ended.body["status"]["finishTime"] = format_time(ahead)
    world.apply(ended)
    world.settle()
    if delay:
        assert world.stamped_users("app") == ["assetlock:lock-delay"]
        let_pass(world, 302)
    assert world.state("second") == "Held"


def test_a_release_is_followed_at_once_whatever_the_delay() -> None:
    world = world_with(lockDelay="5m")
    world.ask("first", "alice")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.withdraw("first")
    world.settle()
    assert world.state("second") == "Held"


def test_a_delay_outlives_the_lock_that_it_follows_and_the_change_of_its_length() -> None:
    world = world_with(lockDelay="5m")
    world.ask("first", ttl="1m")
    world.settle()
    let_pass(world, 62)
    world.withdraw("first")
    world.settle()
    assert world.lease is not None
    assert WITHHELD_ANNOTATION in world.lease["metadata"]["annotations"]
    assert world.asset is not None
    world.asset["spec"]["lockDelay"] = "1m"
    world._touch(world.asset)
    let_pass(world, 62)
    assert world.lease is None
    assert world.stamped_users("app") == []


def test_a_delay_is_of_one_slot_and_the_others_go_on() -> None:
    world = world_with(lockDelay="5m", capacity=2)
    world.ask("first", "ann", mode="Shared", ttl="1m")
    world.settle()
    world.ask("second", "bob", mode="Shared", ttl="1h")
    world.settle()
    let_pass(world, 62)
    assert world.stamped_users("app") == ["bob", "assetlock:lock-delay"]


def quarantined(world: World) -> None:
    world.ask("first", ttl="1m", onExpiry="Quarantine", ttlSecondsAfterFinished=10)
    world.settle()
    world.ask("second", "bob", wait="10h")
    world.settle()
    let_pass(world, 62)


def test_a_quarantine_keeps_everybody_out_until_its_lock_is_deleted(world: World) -> None:
    quarantined(world)
    assert world.state("first") == "Quarantined"
    let_pass(world, 3600, 3600)
    assert world.state("second") == "Pending"
    assert world.stamped_users("app") == ["assetlock:quarantine"]
    assert 'somebody with the verb "unlock" deletes this AssetLock' in message(world, "first", "Finished")
    assert "Quarantined: held by assetlock:quarantine (first)" in message(world, "second")
    world.withdraw("first")
    world.settle()
    assert world.state("second") == "Held"


def test_a_lock_that_is_released_in_time_is_not_quarantined(world: World) -> None:
    world.ask("first", onExpiry="Quarantine")
    world.settle()
    world.withdraw("first")
    world.settle()
    assert world.lease is None


def test_a_quarantine_whose_lease_is_deleted_by_hand_is_over(world: World) -> None:
    quarantined(world)
    world.drop_lease()
    world.settle()
    assert world.state("second") == "Held"
    let_pass(world, 11)
    assert "first" not in world.locks


def test_what_kept_others_out_has_tokens_of_its_own(world: World) -> None:
    quarantined(world)
    world.withdraw("first")
    world.settle()
    assert world.locks["second"]["status"]["fencingToken"] == 3


def test_an_asset_that_is_deleted_keeps_nobody_out(world: World) -> None:
    quarantined(world)
    world.asset = None
    world.settle()
    assert world.leases == {}


# Handing over.


def take_over(world: World, name: str, user: str, of: str, **spec: Any) -> None:
    world.pass_time(1)
    world.ask(name, user, takeOver=of, **spec)


def test_a_lock_is_handed_over_without_a_gap_and_before_all_who_wait(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    world.ask("waiting", "bob", wait="1h", priority=9)
    world.settle()
    take_over(world, "next", "carol", of="first")
    while world.state("next") != "Held":
        assert world.stamped_users("app") in (["alice"], ["carol"])
        for write in decide(world.observe()).writes:
            world.apply(write)
    world.settle()
    assert world.state("first") == "Released"
    assert message(world, "first", "Finished") == "HandedOver: handed over to carol (next)"
    assert world.locks["next"]["status"]["fencingToken"] == 2
    assert world.state("waiting") == "Pending"


def test_a_lease_made_by_hand_is_handed_over_by_its_name(world: World) -> None:
    world.hand_make("job")
    world.settle()
    take_over(world, "person", "alice", of="asset.vm-1")
    world.settle()
    assert world.state("person") == "Held"
    assert world.stamped_users("app") == ["alice"]


def test_a_quarantine_is_handed_over(world: World) -> None:
    quarantined(world)
    take_over(world, "person", "carol", of="first")
    world.settle()
    assert world.state("person") == "Held"
    assert world.state("second") == "Pending"
    assert world.stamped_users("app") == ["carol"]


@pytest.mark.parametrize("of", ["nothing", "waiting", "next"])
def test_nothing_is_taken_over_from_who_does_not_hold(world: World, of: str) -> None:
    world.ask("first", "alice")
    world.settle()
    world.ask("waiting", "bob", wait="1h")
    world.settle()
    take_over(world, "next", "carol", of=of, wait="1h")
    world.settle()
    assert world.state("next") == "Failed"
    assert message(world, "next").startswith("NothingToTakeOver")
    assert world.state("first") == "Held"


def read_by_two() -> World:
    """An asset with room for no more than ann and bob, who hold it."""
    world = world_with(capacity=2)
    for name in ("ann", "bob"):
        world.ask(name, name, mode="Shared")
        world.settle()
    return world


def test_a_reader_s_slot_is_handed_over_and_the_other_readers_stay() -> None:
    world = read_by_two()
    take_over(world, "next", "carol", of="ann", mode="Shared")
    world.settle()
    assert world.stamped_users("app") == ["bob", "carol"]


def test_a_reader_stays_until_the_writer_that_takes_over_has_all_the_rest() -> None:
    world = read_by_two()
    take_over(world, "writer", "carol", of="ann", wait="1h")
    world.settle()
    assert world.stamped_users("app") == ["ann", "bob"]
    world.withdraw("bob")
    world.settle()
    assert world.state("ann") == "Released"
    assert world.stamped_users("app") == ["carol"]
