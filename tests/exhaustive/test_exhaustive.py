"""Every state that the decision can lead to within ten steps, and that the exploration finds what is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from assetlock.core import acquisition, decide, names
from assetlock.core.decision import ConfirmLease
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity
from assetlock.core.rules import ending, granting, maintenance, stamping
from assetlock.core.situation import Situation
from assetlock.core.status import fenced_places
from assetlock.core.windows import term
from assetlock.core.windows.gate import Gate
from tests.exhaustive import deciding, promises
from tests.exhaustive.explore import MIXES, Found, explore
from tests.exhaustive.state import Write
from tests.exhaustive.texts import text_of
from tests.rules import leave_out

DEPTH = 10
CACHES = (deciding.plan_of, promises.check_world, promises.check_future, promises.settled)


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
def test_every_promise_holds_in_every_state_within_ten_steps(
    mix: str, record_property: Callable[[str, object], None]
) -> None:
    explored = explore(MIXES[mix], most_depth=DEPTH)
    record_property("explored", f"{explored.states:>7} states within {DEPTH} steps: {mix}")
    assert explored.states > 4_000, "the model has lost most of what can happen"


def test_an_announcement_before_the_stamp_is_found(other_rules: pytest.MonkeyPatch) -> None:
    rules = list(decide._RULES)
    stamp, announce = rules.index(stamping.stamp), rules.index(granting.announce)
    rules[stamp], rules[announce] = rules[announce], rules[stamp]
    other_rules.setattr(decide, "_RULES", tuple(rules))
    with pytest.raises(Found, match=r"hold; target/app lets in anybody"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_stamp_where_the_asset_lists_none_is_found(other_rules: pytest.MonkeyPatch) -> None:
    leave_out(other_rules, stamping.list_places)
    other_rules.setattr(fenced_places, "fenced", lambda _: [])
    with pytest.raises(Found, match="target/app is stamped, and the asset lists no such place"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_lease_that_passes_on_before_its_lock_has_ended_is_found(other_rules: pytest.MonkeyPatch) -> None:
    leave_out(other_rules, ending.end_locks)
    with pytest.raises(Found, match=r"hold; target/app lets in"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_waiter_that_nobody_serves_is_found(other_rules: pytest.MonkeyPatch) -> None:
    leave_out(other_rules, granting.pass_on)
    with pytest.raises(Found, match="wait and nobody holds"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_reader_beside_a_writer_is_found(other_rules: pytest.MonkeyPatch) -> None:
    def room_for_anybody(seen: Situation, _: object, holders: list[object]) -> bool:
        return len(holders) < seen.observation.capacity

    other_rules.setattr(Situation, "_fits", room_for_anybody)
    with pytest.raises(Found, match="2 hold at once"):
        explore(MIXES["two slots: an Exclusive lock and two Shared ones"], most_depth=DEPTH)


def test_a_token_that_is_given_again_is_found(other_rules: pytest.MonkeyPatch) -> None:
    other_rules.setattr(Situation, "token_in_use", 0)
    with pytest.raises(Found, match="token 1 was given with the high-water mark at 1"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_controller_that_never_comes_to_rest_is_found(other_rules: pytest.MonkeyPatch) -> None:
    other_rules.setattr(term, "is_right", lambda *_: False)
    with pytest.raises(Found, match="never comes to rest"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_decision_that_no_live_read_ever_confirms_is_found(other_rules: pytest.MonkeyPatch) -> None:
    never = (ConfirmLease("asset.vm", None),)
    other_rules.setattr(granting, "confirm_not_over", lambda _: never)
    with pytest.raises(Found, match="a decision is never acted on"):
        explore(MIXES["three Exclusive locks"], most_depth=DEPTH)


def test_a_grant_after_the_window_opened_is_found(other_rules: pytest.MonkeyPatch) -> None:
    other_rules.setattr(Gate, "refusal", lambda *_: None)
    with pytest.raises(Found, match=r"the window opens\n(.*\n)*.*granted while the asset was closed"):
        explore(MIXES["two Exclusive locks, one of them held, and a window that waits"], most_depth=DEPTH)


def test_a_window_that_closes_nothing_is_found(other_rules: pytest.MonkeyPatch) -> None:
    leave_out(other_rules, maintenance.keep)
    with pytest.raises(Found, match="the window never closes the asset"):
        explore(MIXES["two Exclusive locks, and a window that skips"], most_depth=DEPTH)


def test_a_window_that_waits_where_it_is_to_revoke_is_found(other_rules: pytest.MonkeyPatch) -> None:
    other_rules.setattr(acquisition, "_revoked", lambda *_: None)
    with pytest.raises(Found, match="the window never closes the asset"):
        explore(
            MIXES["an Exclusive lock that is held, a Lease made by hand, and a window that revokes"],
            most_depth=DEPTH,
        )


def test_who_closed_an_asset_and_writes_to_it_is_found(other_rules: pytest.MonkeyPatch) -> None:
    other_rules.setattr(stamping, "_identities", lambda holder: [holder.claim.identity])
    with pytest.raises(Found, match=r"hold; target/app lets in"):
        explore(MIXES["an Exclusive lock, one for maintenance, and a window that revokes"], most_depth=DEPTH)


@pytest.mark.parametrize(
    ("place", "before", "after", "broken"),
    [
        ("asset/vm", {"fencingToken": 2}, {"fencingToken": 1}, "the high-water mark fell from 2 to 1"),
        ("lock/lock-a", {"state": "Expired"}, {"state": "Held"}, "left its terminal state Expired"),
    ],
)
def test_what_only_grows_or_stays_may_not_go_back(
    place: str, before: dict[str, object], after: dict[str, object], broken: str
) -> None:
    old, new = (text_of({"metadata": {"name": "x"}, "status": status}) for status in (before, after))
    with pytest.raises(promises.BrokenPromise, match=broken):
        promises.check_change(old, Write(place, new))


def test_a_lower_token_over_a_higher_one_on_a_target_is_found() -> None:
    with pytest.raises(promises.BrokenPromise, match=r"stamped with \[1\] over \[2\]"):
        promises.check_change(_stamped(2), Write("target/app", _stamped(1)))


def _stamped(token: int) -> str:
    stamp = Stamp("app", (StampedHolder(token, Identity("somebody")),), ())
    key = names.stamp_key(deciding.ASSET, deciding.NAMESPACE)
    meta = {"name": "app", "uid": "app", "labels": {names.FENCED_LABEL: "true"}}
    return text_of({"metadata": {**meta, "annotations": {key: str(stamp)}}})
