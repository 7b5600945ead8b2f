"""Locks on any assets of a pool: so many that are free, told by name, and no others."""

from __future__ import annotations

import pytest

from tests.core.town import Town


@pytest.fixture
def town() -> Town:
    town = Town()
    town.label("db", "vm", "web")
    return town


def test_one_that_is_free_is_chosen_told_and_held(town: Town) -> None:
    town.ask_one("patch", "db")
    town.settle()
    town.ask_any("any")
    town.settle()
    assert (town.state("any"), town.having("any")) == ("Held", ["vm"])
    assert town.status("any")["assets"] == [{"name": "vm", "fencingToken": 1}]


def test_so_many_as_are_wanted_are_held_together(town: Town) -> None:
    town.ask_any("two", 2)
    town.settle()
    assert town.having("two") == ["db", "vm"]
    town.ask_any("other", 2, wait="10m")
    town.settle()
    assert (town.state("other"), town.having("other")) == ("Pending", [])
    assert town.reason("other").startswith(
        "Locked: 1 of 3 selected assets are free, and 2 are wanted; asset db: held by"
    )
    town.withdraw("two")
    town.settle()
    assert town.state("other") == "Held"


def test_one_that_does_not_wait_fails_when_all_are_held(town: Town) -> None:
    town.ask("all", "db", "vm", "web")
    town.settle()
    town.ask_any("any")
    town.settle()
    assert town.state("any") == "Failed"
    assert "0 of 3 selected assets are free, and one is wanted; asset db: held by user-all" in town.reason(
        "any"
    )


def test_a_selector_that_selects_too_few_says_so_and_sees_labels_change(town: Town) -> None:
    town.label()
    town.ask_any("two", 2, wait="10m")
    town.settle()
    assert town.reason("two").startswith("TooFewAssets: 'pool=shop' selects no asset in this namespace")
    town.label("web")
    town.settle()
    assert "selects one asset" in town.reason("two") or town.state("two") == "Pending"
    town.label("web", "db")
    town.settle()
    assert town.having("two") == ["db", "web"]


def test_whoever_comes_later_does_not_go_first_on_what_it_may_choose(town: Town) -> None:
    town.label("db", "vm")
    town.ask_one("patch", "db")
    town.settle()
    town.ask_any("both", 2, wait="10m")
    town.settle()
    town.pass_time(2)
    town.ask_one("later", "vm", wait="10m")
    town.settle()
    assert [town.state(name) for name in ("both", "later")] == ["Pending", "Pending"]
    town.ask_one("beside", "web")
    town.settle()
    assert town.state("beside") == "Held"
    town.withdraw("patch")
    town.settle()
    assert [town.state(name) for name in ("both", "later")] == ["Held", "Pending"]


def test_one_that_was_faster_has_it_choose_anew(town: Town) -> None:
    town.ask_any("any", wait="10m")
    asset, decision = town.decide("any")
    town.apply(asset, decision.writes[0])
    assert town.status("any")["assets"] == [{"name": "db"}]
    town.worlds["db"].hand_make("job")
    town.settle()
    assert (town.state("any"), town.having("any")) == ("Held", ["vm"])
    assert town.status("any")["attempt"] == 1


def test_an_asset_that_is_left_by_the_pool_while_it_is_held_stays_held(town: Town) -> None:
    town.ask_any("any")
    town.settle()
    town.label()
    town.settle()
    assert (town.state("any"), town.having("any")) == ("Held", ["db"])
    town.withdraw("any")
    town.settle()
    assert town.worlds["db"].leases == {}


@pytest.mark.parametrize("crash_after", range(1, 12))
def test_a_crash_after_any_write_leaves_only_the_rest_to_do(town: Town, crash_after: int) -> None:
    town.ask_any("two", 2, wait="10m")
    for _ in range(crash_after):
        for what in reversed(town.everything()):
            asset, decision = town.decide(what)
            if decision.writes:
                town.apply(asset, decision.writes[0])
                break
    town.settle()
    assert (town.state("two"), town.having("two")) == ("Held", ["db", "vm"])
