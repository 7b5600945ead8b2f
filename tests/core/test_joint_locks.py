"""Locks over several assets: all of them or none, whoever else wants them."""

from __future__ import annotations

import pytest

from assetlock.core import decision as d
from tests.core.town import Town
from tests.core.world import Stale


@pytest.fixture
def town() -> Town:
    return Town()


def test_all_free_assets_are_held_together_each_with_a_token_of_its_own(town: Town) -> None:
    town.ask("release", "web", "db")
    town.settle()
    assert town.state("release") == "Held"
    assert town.status("release")["assets"] == [
        {"name": "db", "fencingToken": 1},
        {"name": "web", "fencingToken": 1},
    ]
    assert town.having("release") == ["db", "web"]
    assert town.worlds["db"].stamped_users("db-1") == ["user-release"]
    assert "fencingToken" not in town.status("release")


def test_assets_are_taken_in_the_order_of_their_names(town: Town) -> None:
    town.ask("release", "web", "vm", "db")
    _, decision = town.decide("release")
    leases = [write.body["metadata"]["name"] for write in decision.writes if isinstance(write, d.CreateLease)]
    assert leases == ["asset.db", "asset.vm", "asset.web"]


def test_assets_tell_their_tokens_in_order_so_that_none_is_in_the_others_way(town: Town) -> None:
    town.ask("release", "db", "web")
    _, decision = town.decide("release")
    for write in decision.writes:
        town.apply("", write)
    for asset in ("db", "web"):
        for _ in range(2):
            town.apply(asset, town.decide(asset)[1].writes[0])
    assert town.decide("web")[1].writes == ()
    town.apply("db", town.decide("db")[1].writes[0])
    assert town.status("release")["assets"] == [{"name": "db", "fencingToken": 1}]
    town.apply("web", town.decide("web")[1].writes[0])
    assert town.state("release") == "Held"


def test_a_token_that_was_told_before_all_are_had_is_not_recorded_a_second_time(town: Town) -> None:
    town.ask("release", "db", "web")
    for write in town.decide("release")[1].writes:
        town.apply("", write)
    for _ in range(3):
        town.apply("db", town.decide("db")[1].writes[0])
    assert town.status("release")["assets"] == [{"name": "db", "fencingToken": 1}]
    town.worlds["db"].asset["status"][
        "holders"
    ] = []  # It ended, and somebody with an old view begins it again.
    town.settle()
    told = {one["name"]: one["fencingToken"] for one in town.status("release")["assets"]}
    assert (town.state("release"), told) == ("Held", {"db": 2, "web": 1})


def test_nothing_is_taken_while_one_of_them_is_held(town: Town) -> None:
    town.ask_one("patch", "web")
    town.settle()
    town.ask("release", "db", "web", wait="10m")
    town.settle()
    assert (town.state("release"), town.having("release")) == ("Pending", [])
    assert town.reason("release").startswith("Locked: asset web: held by user-patch (patch)")
    town.withdraw("patch")
    town.settle()
    assert town.state("release") == "Held"


def test_one_that_does_not_wait_fails_for_the_asset_that_is_held(town: Town) -> None:
    town.ask_one("patch", "web", ttl="30m")
    town.settle()
    town.ask("release", "db", "web")
    town.settle()
    assert (town.state("release"), town.having("release")) == ("Failed", [])
    assert "asset web: held by user-patch" in town.reason("release")


def test_who_holds_is_told_that_the_time_is_over_before_it_is_taken_from_him(town: Town) -> None:
    town.ask_one("patch", "web", ttl="30s")
    town.ask("release", "db", "web", wait="10m")
    town.settle()
    town.pass_time(32)
    assert town.decide("release")[1].writes == ()
    town.settle()
    assert (town.state("patch"), town.state("release")) == ("Expired", "Held")


def test_an_asset_that_is_not_there_is_named_and_lets_others_go_first(town: Town) -> None:
    town.ask("release", "db", "web", wait="10m")
    town.worlds["web"].asset = None
    town.settle()
    assert town.reason("release").startswith("AssetNotFound: no asset 'web'")
    town.ask_one("patch", "db", wait="1m")
    town.settle()
    assert town.state("patch") == "Held"
    town.withdraw("patch")
    town.at("web").make_asset("web-1")
    town.settle()
    assert town.state("release") == "Held"


def test_whoever_comes_later_does_not_go_first_on_an_asset_that_is_still_free(town: Town) -> None:
    town.ask_one("patch", "web")
    town.settle()
    town.ask("release", "db", "web", wait="10m")
    town.settle()
    town.pass_time(2)
    town.ask_one("later", "db", wait="10m")
    town.settle()
    assert town.state("later") == "Pending"
    assert town.reason("later") == "Locked: user-release (release) comes first; position 2 in the queue"
    town.withdraw("patch")
    town.settle()
    assert (town.state("release"), town.state("later")) == ("Held", "Pending")


def test_two_that_want_the_same_assets_never_wait_for_each_other(town: Town) -> None:
    town.ask("one", "db", "web", wait="10m")
    town.ask("other", "web", "db", wait="10m")
    town.settle()
    assert sorted([town.state("one"), town.state("other")]) == ["Held", "Pending"]
    town.withdraw("one" if town.state("one") == "Held" else "other")
    town.settle()
    assert "Held" in [town.state(name) for name in town.locks]


def test_a_lease_by_hand_that_was_faster_has_the_others_given_back(town: Town) -> None:
    town.ask("release", "db", "web", wait="10m")
    asset, decision = town.decide("release")
    town.apply(asset, decision.writes[0])
    town.worlds["web"].hand_make("job")
    assert town.having("release") == ["db"]
    town.settle()
    assert (town.state("release"), town.having("release")) == ("Pending", [])
    assert town.worlds["db"].stamped_users("db-1") == []
    town.worlds["web"].drop_lease()
    town.settle()
    assert (town.state("release"), town.status("release")["attempt"]) == ("Held", 1)


def test_who_slept_with_the_announcement_conflicts_after_it_was_given_back(town: Town) -> None:
    town.ask("release", "db", "web", wait="10m")
    asset, decision = town.decide("release")
    for write in decision.writes:
        town.apply(asset, write)
    for _ in range(2):
        asset, decision = town.decide("db")
        town.apply(asset, decision.writes[0])
    _, sleeping = town.decide("db")
    assert isinstance(sleeping.writes[0], d.WriteLockStatus)
    town.drop_lease("web")
    town.worlds["web"].hand_make("job")
    town.settle()
    with pytest.raises(Stale):
        town.apply("db", sleeping.writes[0])
    assert town.having("release") == []


@pytest.mark.parametrize("crash_after", range(1, 14))
def test_a_crash_after_any_write_leaves_only_the_rest_to_do(town: Town, crash_after: int) -> None:
    town.ask("release", "db", "vm", "web", wait="10m")
    for _ in range(crash_after):
        for what in town.everything():
            asset, decision = town.decide(what)
            if decision.writes:
                town.apply(asset, decision.writes[0])
                break
    town.settle()
    assert (town.state("release"), town.having("release")) == ("Held", ["db", "vm", "web"])
    town.withdraw("release")
    town.settle()
    assert not any(world.leases for world in town.worlds.values())


def test_losing_one_of_them_ends_the_lock_on_all(town: Town) -> None:
    town.ask("release", "db", "web")
    town.settle()
    town.drop_lease("web")
    town.settle()
    assert town.state("release") == "Revoked"
    assert town.having("release") == []


def test_renewing_one_lease_renews_all(town: Town) -> None:
    town.ask("release", "db", "web", ttl="30s")
    town.settle()
    for _ in range(3):
        town.pass_time(20)
        town.worlds["web"].renew_by_hand()
        town.settle()
    assert town.state("release") == "Held"
    assert town.status("release")["expireTime"] == "2026-03-28T12:01:30Z"
    town.pass_time(32)
    town.settle()
    assert (town.state("release"), town.having("release")) == ("Expired", [])


def test_the_asset_that_allows_least_decides_how_long_it_lasts(town: Town) -> None:
    town.at("web").make_asset("web-1", maxTTL="1m")
    town.at("db").make_asset("db-1", maxHold="40s")
    town.ask("release", "db", "web", ttl="30m")
    town.settle()
    assert town.status("release")["expireTime"] == "2026-03-28T12:00:40Z"
    assert "maxHold 40s" in town.reason("release")
    town.pass_time(42)
    town.settle()
    assert (town.state("release"), town.having("release")) == ("Expired", [])


def test_a_longer_ttl_starts_a_new_term_on_all(town: Town) -> None:
    town.ask("release", "db", "web", ttl="1m")
    town.settle()
    town.locks["release"]["spec"]["ttl"] = "10m"
    town.at("db")._touch(town.locks["release"])
    town.settle()
    assert town.status("release")["expireTime"] == "2026-03-28T12:10:00Z"
    town.pass_time(300)
    town.settle()
    assert town.state("release") == "Held"


def test_a_quarantine_keeps_all_of_them_closed_until_the_lock_is_deleted(town: Town) -> None:
    town.ask("release", "db", "web", ttl="1m", onExpiry="Quarantine")
    town.settle()
    town.pass_time(62)
    town.ask_one("next", "web", wait="10m")
    town.settle()
    assert (town.state("release"), town.state("next")) == ("Quarantined", "Pending")
    town.withdraw("release")
    town.settle()
    assert town.state("next") == "Held"
    assert not town.worlds["db"].leases


def test_it_waits_no_longer_than_it_said(town: Town) -> None:
    town.ask_one("patch", "web", ttl="1h")
    town.ask("release", "db", "web", wait="1m")
    town.settle()
    town.pass_time(62)
    town.settle()
    assert town.reason("release").startswith("WaitTimeout: waited 1m; asset web: held by user-patch")


def test_one_that_is_over_is_forgotten_when_nothing_of_it_is_left(town: Town) -> None:
    town.ask("release", "db", "web", ttl="10s", ttlSecondsAfterFinished=5)
    town.settle()
    town.pass_time(12)
    town.settle()
    assert town.state("release") == "Expired"
    town.pass_time(6)
    town.settle()
    assert town.locks == {}


def test_a_reader_of_one_and_writer_of_none_shares(town: Town) -> None:
    town.at("web").resize(2)
    town.at("db").resize(2)
    for name in ("one", "other"):
        town.ask(name, "db", "web", mode="Shared", wait="1m")
    town.settle()
    assert [town.state(name) for name in ("one", "other")] == ["Held", "Held"]
    town.ask("writer", "db", "web", wait="10m")
    town.settle()
    town.withdraw("one")
    town.settle()
    assert (town.state("writer"), town.having("writer")) == ("Pending", [])
    town.withdraw("other")
    town.settle()
    assert town.state("writer") == "Held"
