"""A search for deadlocks among the locks that may be in one finds what a search among all of them finds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assetlock.core.deadlocks import graph
from assetlock.core.deadlocks.decide import claim_of
from assetlock.core.deadlocks.suspects import Suspects
from assetlock.model.assetlock import AssetLock

CAPACITY = 2


def lock(
    name: str,
    user: str,
    *assets: str,
    held: bool,
    mode: str = "Exclusive",
    run: str | None = None,
    n: int = 0,
) -> AssetLock:
    meta = {"namespace": "team-a", "name": name, "uid": f"u-{name}", "resourceVersion": "1"}
    meta["creationTimestamp"] = f"2030-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"
    spec: dict[str, Any] = {"mode": mode, "wait": "1h", "holder": {"username": user}, "holderId": run}
    spec |= {"assetName": assets[0]} if len(assets) == 1 else {"assetNames": list(assets)}
    status = {"state": "Held" if held else "Pending"}
    return AssetLock.model_validate({"metadata": meta, "spec": spec, "status": status})


def suspects_among(locks: Sequence[AssetLock]) -> list[AssetLock]:
    suspects = Suspects()
    for each in locks:
        suspects.add(each)
    return list(suspects)


def searched(locks: Sequence[AssetLock]) -> graph.Deadlock | None:
    return graph.find([claim for each in locks if (claim := claim_of(each))], dict.fromkeys("xyzw", CAPACITY))


drawn = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.lists(st.sampled_from("xyzw"), min_size=1, max_size=2, unique=True),
        st.booleans(),
        st.sampled_from(["Exclusive", "Shared"]),
        st.sampled_from([None, "run-1"]),
    ),
    max_size=9,
)


@given(drawn=drawn, gone=st.sets(st.integers(0, 8)))
@settings(max_examples=600, deadline=None)
def test_the_same_deadlock_is_found_among_suspects_as_among_all(
    drawn: list[tuple[str, list[str], bool, str, str | None]], gone: set[int]
) -> None:
    locks = [
        lock(f"l{n}", user, *assets, held=held, mode=mode, run=run, n=n)
        for n, (user, assets, held, mode, run) in enumerate(drawn)
    ]
    suspects = Suspects()
    for each in locks:
        suspects.add(each)
        suspects.add(each)
    for n in gone & set(range(len(locks))):
        suspects.discard(locks[n].metadata.uid)
    left = [each for n, each in enumerate(locks) if n not in gone]
    found, expected = searched(list(suspects)), searched(left)
    assert (found is None) == (expected is None)
    assert found is None or expected is None or found.victim == expected.victim


def test_nobody_in_a_line_of_thousands_is_a_suspect_while_who_has_it_waits_for_nothing() -> None:
    line = [lock(f"w-{n}", f"user-{n}", "x", held=False, n=n) for n in range(2_000)]
    assert suspects_among([lock("h", "holder", "x", held=True), *line]) == []


def test_many_runs_of_one_user_are_no_suspects_as_they_may_be_different() -> None:
    line = [lock(f"w-{n}", "ci", "x", held=False, n=n) for n in range(100)]
    assert suspects_among([lock("h", "ci", "x", held=True), lock("g", "ci", "y", held=True), *line]) == []


def test_who_is_in_no_way_back_is_no_suspect_beside_those_who_are() -> None:
    cross = [
        lock("a1", "alice", "x", held=True),
        lock("b1", "bob", "y", held=True),
        lock("a2", "alice", "y", held=False),
        lock("b2", "bob", "x", held=False),
    ]
    others = [lock("c1", "carol", "z", held=True), lock("d1", "dan", "z", held=False)]
    assert {each.metadata.name for each in suspects_among([*cross, *others])} == {"a1", "a2", "b1", "b2"}


def calls_of(work: Callable[[], object]) -> int:
    calls = 0

    def count(_frame: object, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def cost_of_searching(length: int) -> int:
    """Steps until the deadlock is found of two users, one of whom is the last in a long line."""
    line = [lock(f"w-{n}", f"user-{n}", "x", held=False, n=n) for n in range(length)]
    held = [lock("a1", "alice", "x", held=True), lock("b1", "bob", "y", held=True)]
    late = [lock("a2", "alice", "y", held=False, n=length), lock("b2", "bob", "x", held=False, n=length + 1)]
    suspects = suspects_among([*held, *line, *late])
    claims = [claim for each in suspects if (claim := claim_of(each))]
    found: list[graph.Deadlock | None] = []
    cost = calls_of(lambda: found.append(graph.find(claims, {})))
    assert found[0] is not None and found[0].victim.name == "b2"
    return cost


def test_a_search_costs_as_much_more_as_the_line_is_longer() -> None:
    assert cost_of_searching(2_000) <= 4.4 * cost_of_searching(500)
