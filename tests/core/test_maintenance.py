"""Locks for maintenance, and windows that hold them: who writes, who waits, who goes, and when."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from assetlock.core.decide import decide
from tests.core.test_decide import kinds
from tests.core.world import START, World

MAINTENANCE = {"mode": "Maintenance"}
HOUR = 3600


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app", exempt=["provider"])
    world.make_target("app")
    world.settle()
    return world


def at(hours: float) -> str:
    return (START + datetime.timedelta(hours=hours)).isoformat()


def once(start: float, end: float, **spec: Any) -> dict[str, Any]:
    """From so many hours after the beginning of the test until so many."""
    return {"start": at(start), "end": at(end), **spec}


def message(world: World, name: str) -> str:
    conditions = world.locks[name]["status"]["conditions"]
    return str(next(c["message"] for c in conditions if c["type"] == "Settled"))


def window_locks(world: World) -> list[str]:
    return [name for name in world.locks if name.startswith("window.")]


def pass_until(world: World, hours: float) -> None:
    """Let time pass as the controller does: from one deadline to the next."""
    end = START + datetime.timedelta(hours=hours)
    while True:
        world.settle()
        wake = decide(world.observe()).wake_at
        if wake is None or wake > end:
            break
        world.now = wake
    world.now = end
    world.settle()


def test_a_lock_for_maintenance_lets_nobody_write_not_even_who_made_it(world: World) -> None:
    world.ask("quiet", "alice", **MAINTENANCE, reason="new disks")
    world.settle()
    assert world.state("quiet") == "Held"
    assert world.writers("app") == []
    stamp = next(iter(world.targets["app"]["metadata"]["annotations"].values()))
    assert stamp.split("\n")[1:] == ["1 @maintenance alice: new disks"], (
        "nobody is exempt, and the reason is told"
    )
    assert world.asset is not None
    assert world.asset["status"]["lockState"] == "Maintenance"


def test_maintainers_write_instead(world: World) -> None:
    subjects = [
        {"kind": "Group", "name": "sre"},
        {"kind": "ServiceAccount", "name": "bot", "namespace": "ops"},
    ]
    world.ask("quiet", "alice", **MAINTENANCE, maintainers=subjects)
    world.settle()
    assert world.writers("app") == ["@group sre", "- system:serviceaccount:ops:bot"]


def test_maintenance_comes_before_all_who_wait_and_waits_for_who_holds(world: World) -> None:
    world.ask("first", ttl="1h")
    world.settle()
    world.ask("second", wait="10h", priority=100)
    world.settle()
    world.ask("quiet", "carol", **MAINTENANCE)
    world.settle()
    assert (world.state("first"), world.state("quiet")) == ("Held", "Pending")
    world.withdraw("first")
    world.settle()
    assert (world.state("quiet"), world.state("second")) == ("Held", "Pending")


def test_maintenance_that_revokes_sends_the_holder_away_and_says_why(world: World) -> None:
    world.ask("first", "bob", ttl="1h")
    world.settle()
    world.ask("quiet", "alice", **MAINTENANCE, whenHeld="Revoke", reason="fire")
    writes = world.settle()
    assert (world.state("first"), world.state("quiet")) == ("Revoked", "Held")
    assert "under maintenance by alice, lock quiet (fire)" in message(world, "first")
    assert "DeleteLease" not in kinds(writes), "it is handed over, not freed in between"


def test_a_lease_made_by_hand_is_revoked_too(world: World) -> None:
    world.hand_make("job")
    world.settle()
    world.ask("quiet", **MAINTENANCE, whenHeld="Revoke")
    world.settle()
    assert (world.state("quiet"), world.stamped_users("app")) == ("Held", ["alice"])


def test_a_colleague_takes_maintenance_over_in_one_write(world: World) -> None:
    world.ask("quiet", "alice", **MAINTENANCE)
    world.settle()
    world.ask("takeover", "carol", **MAINTENANCE, whenHeld="Revoke")
    assert "DeleteLease" not in kinds(world.settle())
    assert (world.state("quiet"), world.state("takeover")) == ("Revoked", "Held")


def test_nobody_is_revoked_where_nothing_can_be_fenced(world: World) -> None:
    world.ask("first", ttl="1h")
    world.settle()
    world.problems["app"] = "no room for the stamp"
    world.ask("quiet", "carol", **MAINTENANCE, whenHeld="Revoke")
    world.settle()
    assert world.state("first") == "Held"


def test_maintenance_that_skips_fails_when_somebody_holds_it(world: World) -> None:
    world.ask("first", ttl="1h")
    world.settle()
    world.ask("quiet", "carol", **MAINTENANCE, whenHeld="Skip")
    world.settle()
    assert world.state("quiet") == "Failed"


def test_maintenance_lasts_longer_than_any_other_lock_may(world: World) -> None:
    world.ask("quiet", **MAINTENANCE, ttl="P20D")
    world.settle()
    world.pass_time(19 * 24 * HOUR)
    world.settle()
    assert world.state("quiet") == "Held"
    world.pass_time(24 * HOUR + 2)
    world.settle()
    assert world.state("quiet") == "Expired"


def test_maintenance_is_extended_by_a_longer_ttl(world: World) -> None:
    world.ask("quiet", **MAINTENANCE, ttl="1h")
    world.settle()
    world.pass_time(HOUR / 2)
    world.locks["quiet"]["spec"]["ttl"] = "3h"
    world.settle()
    world.pass_time(2 * HOUR)
    world.settle()
    assert world.state("quiet") == "Held"


def test_a_window_closes_the_asset_while_it_lasts_and_no_longer(world: World) -> None:
    world.schedule("freeze", **once(1, 3), reason="year end")
    pass_until(world, 0.9)
    assert window_locks(world) == []
    pass_until(world, 1)
    [lock] = window_locks(world)
    assert world.state(lock) == "Held"
    assert world.locks[lock]["status"]["expireTime"] == "2026-03-28T15:00:00Z"
    assert (
        world.locks[lock]["metadata"]["ownerReferences"][0]["uid"]
        == world.windows["freeze"]["metadata"]["uid"]
    )
    pass_until(world, 2.99)
    assert world.writers("app") == []
    pass_until(world, 3)
    assert (window_locks(world), world.lease, world.stamped_users("app")) == ([], None, [])


def test_an_operator_that_was_down_over_a_start_and_an_end_catches_up(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    world.now = START + datetime.timedelta(hours=2)
    world.settle()
    assert world.state(window_locks(world)[0]) == "Held"
    world.now = START + datetime.timedelta(hours=9)
    world.settle()
    assert (window_locks(world), world.stamped_users("app")) == ([], [])


def test_a_nightly_window_is_kept_through_the_night_in_which_the_clocks_change(world: World) -> None:
    world.schedule("freeze", schedule="0 1 * * *", duration="2h", timeZone="Europe/Berlin")
    closed = []
    for half_hour in range(1, 96):
        pass_until(world, half_hour / 2)
        if window_locks(world):
            closed.append(f"{world.now:%d %H:%M}")
    first = ["29 00:00", "29 00:30", "29 01:00", "29 01:30"]
    assert closed == [*first, "29 23:00", "29 23:30", "30 00:00", "30 00:30"]


def test_nobody_is_granted_inside_a_window_and_is_told_when_it_opens(world: World) -> None:
    world.schedule("freeze", **once(0, 3), reason="year end")
    world.ask("first", "bob")
    world.ask("waits", "carol", wait="9h")
    world.settle()
    assert world.state("first") == "Failed"
    assert message(world, "first") == (
        "under maintenance by window freeze since 2026-03-28T12:00:00Z (year end); maintenance ends at "
        "2026-03-28T15:00:00Z; set spec.wait to queue"
    )
    assert world.state("waits") == "Pending"
    pass_until(world, 3)
    assert world.state("waits") == "Held"


def test_a_waiter_whose_turn_comes_after_the_start_does_not_get_it(world: World) -> None:
    world.ask("first", ttl="30m")
    world.ask("waits", "carol", wait="9h")
    world.settle()
    world.schedule("freeze", **once(0.25, 3))
    pass_until(world, 0.6)
    assert (world.state("first"), world.state("waits")) == ("Expired", "Pending")
    assert world.state(window_locks(world)[0]) == "Held"


def test_a_window_waits_for_who_holds_and_still_ends_in_time(world: World) -> None:
    world.ask("first", ttl="2h")
    world.settle()
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 2.1)
    [lock] = window_locks(world)
    assert (world.state("first"), world.state(lock)) == ("Expired", "Held")
    assert world.locks[lock]["status"]["expireTime"] == "2026-03-28T15:00:00Z"


def test_a_window_revokes_who_holds(world: World) -> None:
    world.ask("first", ttl="2h")
    world.settle()
    world.schedule("freeze", **once(1, 3), whenHeld="Revoke", reason="year end")
    pass_until(world, 1)
    assert world.state("first") == "Revoked"
    assert "maintenance by assetlock:window:freeze" in message(world, "first")
    assert "(year end)" in message(world, "first")


def test_a_window_that_skips_passes_a_held_asset_by_this_time_only(world: World) -> None:
    world.ask("first", ttl="2h")
    world.settle()
    world.schedule("freeze", schedule="0 13 * * *", duration="4h", whenHeld="Skip")
    pass_until(world, 2.5)
    assert world.state(window_locks(world)[0]) == "Failed"
    world.ask("second")
    world.settle()
    assert world.state("second") == "Held"
    pass_until(world, 5.1)
    assert window_locks(world) == []
    pass_until(world, 25.1)
    assert world.state(window_locks(world)[0]) == "Held"


def test_a_window_does_not_end_a_persons_maintenance(world: World) -> None:
    world.ask("quiet", **MAINTENANCE, ttl="2h")
    world.settle()
    world.schedule("freeze", **once(1, 3), whenHeld="Revoke")
    pass_until(world, 1.5)
    assert world.state("quiet") == "Held"
    pass_until(world, 2.1)
    assert world.state(window_locks(world)[0]) == "Held"


@pytest.mark.parametrize("change", [{"suspend": True}, {"end": at(1.2)}, {"assetNames": ["another"]}])
def test_a_change_that_opens_takes_effect_at_once(world: World, change: dict[str, Any]) -> None:
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 1.5)
    world.schedule("freeze", **{**once(1, 3), **change})
    world.settle()
    assert (window_locks(world), world.stamped_users("app")) == ([], [])


def test_a_window_that_is_deleted_opens_at_once(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 1.5)
    del world.windows["freeze"]
    world.settle()
    assert (window_locks(world), world.lease) == ([], None)


def test_the_lock_of_a_window_comes_back_when_somebody_deletes_it(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 1.5)
    [lock] = window_locks(world)
    world.withdraw(lock)
    world.ask("first", "bob")
    world.settle()
    assert (world.state(lock), world.state("first")) == ("Held", "Failed")


def test_an_edited_end_moves_the_end_of_the_lock(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 1.5)
    [before] = window_locks(world)
    world.schedule("freeze", **once(1, 6))
    world.settle()
    assert window_locks(world) == [before]
    assert world.locks[before]["status"]["expireTime"] == "2026-03-28T18:00:00Z"
    pass_until(world, 5)
    assert world.state(before) == "Held"


def test_edited_maintainers_are_swapped_without_a_gap(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 1.5)
    world.schedule("freeze", **once(1, 3), maintainers=[{"kind": "User", "name": "ada"}])
    writes = kinds(world.settle())
    assert world.writers("app") == ["- ada"]
    assert "DeleteLease" not in writes, "the asset is never free in between"
    assert len(window_locks(world)) == 1


def test_an_asset_that_is_being_deleted_keeps_the_lock_of_its_window_whatever_is_edited(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    pass_until(world, 2)
    (held,) = window_locks(world)
    assert world.asset is not None
    world.asset["metadata"] |= {"deletionTimestamp": at(2), "finalizers": ["example.com/keeps"]}
    world.schedule("freeze", **once(1, 3), maintainers=[{"kind": "User", "name": "ada"}])
    world.settle()
    assert window_locks(world) == [held]
    assert world.state(held) == "Held"


def test_a_second_window_that_ends_later_goes_on_where_the_first_ends(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    world.schedule("patch", **once(2, 5), maintainers=[{"kind": "User", "name": "ada"}])
    pass_until(world, 2.5)
    assert world.writers("app") == []
    pass_until(world, 3.1)
    assert world.writers("app") == ["- ada"]
    pass_until(world, 5.1)
    assert world.stamped_users("app") == []


def test_an_allow_window_closes_outside_it(world: World) -> None:
    world.schedule("freeze", schedule="0 14 * * *", duration="2h", kind="Allow")
    world.settle()
    assert world.state(window_locks(world)[0]) == "Held"
    pass_until(world, 2.1)
    assert window_locks(world) == []
    world.ask("first", ttl="5h")
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T16:00:00Z", "cut short at its end"


def test_a_ttl_that_would_outlive_the_start_is_cut_short(world: World) -> None:
    world.schedule("freeze", **once(1, 3))
    world.ask("first", ttl="2h")
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T13:00:00Z"
    assert world.settle() == [], "and stays so"
    del world.windows["freeze"]
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T14:00:00Z"


def test_what_was_cut_short_begins_no_new_term_in_the_moment_between_the_start_and_its_end(
    world: World,
) -> None:
    world.schedule("freeze", **once(1, 3))
    world.ask("first", ttl="2h")
    world.settle()
    world.now = START + datetime.timedelta(hours=1, milliseconds=300)
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T13:00:00Z"
    world.pass_time(2)
    world.settle()
    assert world.state("first") == "Expired"
    assert [world.state(name) for name in window_locks(world)] == ["Held"]


def test_a_lock_that_a_window_cuts_short_says_so_and_can_not_be_renewed_past_it(world: World) -> None:
    world.schedule("freeze", **once(0.5, 2))
    world.ask("first", ttl="1h")
    world.settle()
    assert "ttl 1h is cut short: window freeze begins maintenance at 2026-03-28T12:30:00Z" in message(
        world, "first"
    )
    world.now = START + datetime.timedelta(minutes=29)
    world.locks["first"]["spec"]["renewTime"] = world.now.isoformat()
    world._touch(world.locks["first"])
    pass_until(world, 0.6)
    assert world.state("first") == "Expired"


def test_a_lock_that_both_a_window_and_max_hold_cut_short_is_not_renewed_for_ever(world: World) -> None:
    assert world.asset is not None
    world.asset["spec"]["maxHold"] = "30m"
    world.schedule("freeze", **once(1, 3))
    world.ask("first", ttl="2h")
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T12:30:00Z"


def test_within_the_lead_time_only_what_ends_before_the_start_is_granted(world: World) -> None:
    world.schedule("freeze", **once(1, 3), leadTime="30m", reason="year end")
    pass_until(world, 0.6)
    world.ask("long", "bob", ttl="1h")
    world.ask("short", "carol", ttl="10m")
    world.settle()
    assert (world.state("long"), world.state("short")) == ("Failed", "Held")
    assert message(world, "long").startswith(
        "its TTL would outlive 2026-03-28T13:00:00Z, when the asset is under maintenance by window freeze "
        "(year end); ask for less, or later: maintenance ends at 2026-03-28T15:00:00Z"
    )


def test_a_window_that_skips_follows_another_window_without_a_gap(world: World) -> None:
    world.schedule("freeze", **once(1, 3), whenHeld="Skip")
    world.schedule("patch", **once(2, 5), whenHeld="Skip", maintainers=[{"kind": "User", "name": "ada"}])
    pass_until(world, 1.5)
    world.ask("first", "bob", wait="4h")
    pass_until(world, 3.1)
    assert world.writers("app") == ["- ada"]
    assert (len(window_locks(world)), world.state("first")) == (1, "Pending")
    pass_until(world, 4.9)
    assert world.state("first") == "Pending"
    pass_until(world, 5.1)
    assert world.state("first") == "Held"


def test_nobody_takes_over_what_is_closed_to_him(world: World) -> None:
    world.ask("first", "alice", ttl="4h")
    world.settle()
    world.schedule("freeze", **once(1, 2))
    pass_until(world, 1.5)
    world.ask("heir", "bob", takeOver="first", wait="4h")
    world.settle()
    assert (world.state("first"), world.state("heir")) == ("Held", "Pending")
    assert "under maintenance" in message(world, "heir")
    pass_until(world, 2.1)
    assert (world.state("first"), world.state("heir")) == ("Released", "Held")


@pytest.mark.parametrize("behind", [3, 170, 7200])
def test_a_leader_whose_clock_is_behind_opens_what_the_last_one_has_closed(behind: int) -> None:
    world = World()
    world.make_asset("app", capacity=2)
    world.make_target("app")
    world.schedule("freeze", **once(-2, -1), kind="Allow")
    world.settle()
    assert [world.state(name) for name in window_locks(world)] == ["Held"]
    world.now -= datetime.timedelta(seconds=behind)
    for slot in (0, 1):
        world.terms[slot] = (world.terms[slot][0], world.now + datetime.timedelta(milliseconds=slot))
    world.pass_time(1)
    del world.windows["freeze"]
    world.settle()
    assert (window_locks(world), world.leases) == ([], {})
