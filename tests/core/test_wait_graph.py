"""Who waits for himself over others: found by the graph exactly when nobody can go on by trying everything."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from assetlock.core.deadlocks.graph import Claim, Deadlock, find

NOON = datetime.datetime(2026, 3, 28, 12, tzinfo=datetime.UTC)


def claim(
    name: str, flow: str, *assets: str, held: bool, n: int = 0, whole: bool = True, sure: bool = True
) -> Claim:
    made = (NOON + datetime.timedelta(seconds=n), name)
    return Claim(name, flow, flow, assets, whole, held, rank=(n, name), age=made, sure=sure)


def has(name: str, flow: str, *assets: str, whole: bool = True, sure: bool = True) -> Claim:
    return claim(name, flow, *assets, held=True, whole=whole, sure=sure)


def wants(name: str, flow: str, *assets: str, n: int = 1, whole: bool = True, sure: bool = True) -> Claim:
    return claim(name, flow, *assets, held=False, n=n, whole=whole, sure=sure)


def found(*claims: Claim, **capacities: int) -> Deadlock:
    deadlock = find(claims, capacities)
    assert deadlock is not None
    return deadlock


def test_the_younger_of_two_who_wait_for_each_other_is_the_victim_and_the_cycle_is_told() -> None:
    deadlock = found(
        has("a1", "alice", "x"),
        wants("a2", "alice", "y", n=1),
        has("b1", "bob", "y"),
        wants("b2", "bob", "x", n=2),
    )
    assert deadlock.victim.name == "b2"
    assert str(deadlock) == (
        "bob (b2) waits for asset x, which alice (a1) has; alice (a2) waits for asset y, which bob (b1) has"
    )


def test_who_only_waits_for_one_that_goes_on_is_in_none() -> None:
    assert find([has("a1", "alice", "x"), wants("a2", "alice", "y"), has("b1", "bob", "y")], {}) is None


def test_three_in_a_ring_are_found_and_who_waits_behind_them_is_no_victim() -> None:
    ring = [
        claim
        for n, (who, own, next_) in enumerate([("a", "x", "y"), ("b", "y", "z"), ("c", "z", "x")])
        for claim in (has(f"{who}1", who, own), wants(f"{who}2", who, next_, n=n))
    ]
    deadlock = found(*ring, wants("late", "dora", "x", n=9))
    assert deadlock.victim.name == "c2"
    assert len(deadlock.cycle) == 6


def test_standing_in_line_behind_one_that_waits_for_what_one_has_is_waiting_for_oneself() -> None:
    deadlock = found(
        has("a1", "alice", "x"), wants("both", "bob", "x", "y", n=1), wants("a2", "alice", "y", n=2)
    )
    assert deadlock.victim.name == "a2"
    assert "bob (both) is ahead of it in the queue of" in str(deadlock)


def test_a_reader_waits_for_a_slot_and_not_for_every_reader() -> None:
    readers = [has("b1", "bob", "y", whole=False), has("c1", "carol", "y", whole=False)]
    others = [has("a1", "alice", "x"), wants("a2", "alice", "y", whole=False), wants("b2", "bob", "x", n=2)]
    assert find([*readers, *others], {"y": 2}) is None
    assert found(*readers[:1], *others, wants("c2", "carol", "x", n=3), readers[1], y=2).victim.name == "c2"


def test_waiting_for_what_one_has_oneself_counts_only_when_that_is_sure() -> None:
    assert found(has("a1", "run-7", "x"), wants("a2", "run-7", "x")).victim.name == "a2"
    twice = [has("a1", "ci", "x", sure=False), wants("a2", "ci", "x", sure=False)]
    assert find(twice, {}) is None


def test_two_runs_of_one_user_with_somebody_else_in_line_between_them_are_no_deadlock() -> None:
    line = [
        has("build-1", "ci", "x", sure=False),
        wants("hers", "alice", "x", n=1, sure=False),
        wants("build-2", "ci", "x", n=2, sure=False),
    ]
    assert find(line, {}) is None
    run = [dataclasses.replace(each, sure=True) for each in line]
    assert find(run, {}) is not None


ASSETS = ("x", "y", "z")
CLAIMS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.lists(st.sampled_from(ASSETS), min_size=1, max_size=2, unique=True),
        st.booleans(),
        st.booleans(),
    ),
    max_size=8,
)


def drawn(parts: Sequence[tuple[str, list[str], bool, bool]], capacity: int) -> list[Claim]:
    """As many of these as can be held at once hold; the others wait."""
    claims: list[Claim] = []
    for n, (flow, assets, held, whole) in enumerate(parts):
        new = claim(f"l{n}", flow, *assets, held=held, n=n, whole=whole)
        if held and not all(fits(new, asset, claims, capacity) for asset in assets):
            new = dataclasses.replace(new, held=False)
        claims.append(new)
    return claims


def fits(new: Claim, asset: str, claims: Sequence[Claim], capacity: int) -> bool:
    present = [each for each in claims if each.held and asset in each.assets]
    if new.whole or any(each.whole for each in present):
        return not present
    return len(present) < capacity


def left_over(claims: Sequence[Claim], capacity: int) -> set[str]:
    """By trying: serve who is next where it fits, and let go who waits for nothing, until nothing moves."""
    left = list(claims)
    while True:
        waiting = sorted((each for each in left if not each.held), key=lambda each: each.rank)
        for one in waiting:
            ahead = [
                other for other in waiting if other.rank < one.rank and set(other.assets) & set(one.assets)
            ]
            if not ahead and all(fits(one, asset, left, capacity) for asset in one.assets):
                left.remove(one)
                break
        else:
            busy = {each.flow for each in waiting}
            gone = [each for each in left if each.held and each.flow not in busy]
            if not gone:
                return {each.name for each in left}
            left = [each for each in left if each not in gone]


@settings(max_examples=400, deadline=None)
@given(parts=CLAIMS, capacity=st.integers(1, 2))
def test_a_deadlock_is_found_exactly_when_not_all_come_on_by_trying(
    parts: list[tuple[str, list[str], bool, bool]], capacity: int
) -> None:
    claims = drawn(parts, capacity)
    deadlock = find(claims, dict.fromkeys(ASSETS, capacity))
    left = left_over(claims, capacity)
    assert (deadlock is not None) == bool(left)
    if deadlock is not None:
        assert {each.name for each in deadlock.cycle} <= left
        assert not deadlock.victim.held
        assert str(deadlock)


@settings(max_examples=200, deadline=None)
@given(parts=CLAIMS, capacity=st.integers(1, 2))
def test_failing_one_victim_after_the_other_lets_all_come_on(
    parts: list[tuple[str, list[str], bool, bool]], capacity: int
) -> None:
    claims = drawn(parts, capacity)
    while deadlock := find(claims, dict.fromkeys(ASSETS, capacity)):
        claims.remove(deadlock.victim)
    assert not left_over(claims, capacity)
