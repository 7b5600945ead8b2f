"""Every state that the decision can lead to within ten steps, and that the exploration finds what is broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assetlock.core import decide, ending, fencing, granting
from assetlock.core.situation import Situation
from tests.exhaustive import deciding, promises
from tests.exhaustive.explore import MIXES, Found, explore

DEPTH = 10
CACHES = (deciding.plan_of, promises.check_world, promises.check_future, promises._settled)


@pytest.fixture
def other_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Rules may be changed; what was decided by others is forgotten before and after."""
    _forget()
    yield monkeypatch
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mix", MIXES)
def test_every_promise_holds_in_every_state_within_ten_steps(mix: str) -> None:
    explored = explore(MIXES[mix], most_depth=DEPTH)
    print(
        f"{mix}: {explored.states} states, {explored.transitions} transitions; new at each depth {explored.new}"
    )
    assert explored.states > 4_000, "the model has lost most of what can happen"


def test_an_announcement_before_the_stamp_is_found(other_rules: pytest.MonkeyPatch) -> None:
    rules = list(decide._RULES)
    stamp, announce = rules.index(fencing.stamp), rules.index(granting.announce)
    rules[stamp], rules[announce] = rules[announce], rules[stamp]
    other_rules.setattr(decide, "_RULES", tuple(rules))
    with pytest.raises(Found, match=r"hold; target/app lets in anybody"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_lease_that_passes_on_before_its_lock_has_ended_is_found(other_rules: pytest.MonkeyPatch) -> None:
    rules = [rule for rule in decide._RULES if rule is not ending.end_locks]
    other_rules.setattr(decide, "_RULES", tuple(rules))
    with pytest.raises(Found, match=r"hold; target/app lets in"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_waiter_that_nobody_serves_is_found(other_rules: pytest.MonkeyPatch) -> None:
    rules = [rule for rule in decide._RULES if rule is not granting.pass_on]
    other_rules.setattr(decide, "_RULES", tuple(rules))
    with pytest.raises(Found, match="wait and nobody holds"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_reader_beside_a_writer_is_found(other_rules: pytest.MonkeyPatch) -> None:
    def room_for_anybody(seen: Situation, _: object, holders: list[object]) -> bool:
        return len(holders) < seen.observation.capacity

    other_rules.setattr(Situation, "_fits", room_for_anybody)
    with pytest.raises(Found, match="2 hold at once"):
        explore(MIXES["two slots: an Exclusive lock and two Shared ones"], most_depth=DEPTH)
