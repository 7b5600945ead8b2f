"""Several windows on one asset: their union, and Block wins over Allow."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assetlock.core.windows.closures import Closures, concerned
from assetlock.model.asset import Asset
from assetlock.model.window import MaintenanceWindow

DAY = datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
ASSET = Asset.model_validate({"metadata": {"name": "vm-1", "labels": {"env": "prod"}}})


def window(name: str, schedule: str = "0 22 * * *", duration: str = "2h", **fields: Any) -> MaintenanceWindow:
    spec = {"schedule": schedule, "duration": duration, "assetNames": ["vm-1"], **fields}
    return MaintenanceWindow.model_validate({"metadata": {"name": name, "uid": name}, "spec": spec})


def hours(*windows: MaintenanceWindow) -> set[int]:
    """The hours of the day in which the asset is closed."""
    closings = Closures(ASSET, windows)
    return {hour for hour in range(24) if closings.at(DAY + HOUR * hour)}


def test_a_block_window_closes_inside_and_an_allow_window_outside() -> None:
    assert hours(window("night")) == {22, 23}
    assert hours(window("day", "0 8 * * *", "10h", kind="Allow")) == set(range(24)) - set(range(8, 18))


def test_block_wins_over_allow() -> None:
    day, noon = window("day", "0 8 * * *", "10h", kind="Allow"), window("noon", "0 12 * * *", "1h")
    assert hours(day, noon) == set(range(24)) - set(range(8, 18)) | {12}


def test_either_of_two_allow_windows_opens() -> None:
    early, late = (window(n, f"0 {n} * * *", "1h", kind="Allow") for n in ("6", "20"))
    assert hours(early, late) == set(range(24)) - {6, 20}


def test_it_is_closed_until_the_last_of_the_windows_that_touch_has_ended() -> None:
    first, second = window("a", "0 10 * * *", "2h"), window("b", "0 11 * * *", "3h")
    closure = Closures(ASSET, [second, first]).at(DAY + 11 * HOUR)
    assert closure is not None
    assert [w.metadata.name for w in closure.windows] == ["a", "b"]
    assert (closure.since, closure.until) == (DAY + 10 * HOUR, DAY + 14 * HOUR)


def test_the_strictest_of_several_windows_decides() -> None:
    ada, bob = {"kind": "User", "name": "ada"}, {"kind": "User", "name": "bob"}
    first = window("a", whenHeld="Skip", maintainers=[ada, bob], reason="patches")
    second = window("b", whenHeld="Revoke", maintainers=[bob], reason="freeze")
    closure = Closures(ASSET, [first, second]).at(DAY + 22 * HOUR)
    assert closure is not None
    assert (closure.when_held, closure.reason) == ("Revoke", "patches; freeze")
    assert [subject.name for subject in closure.maintainers] == ["bob"]


def test_suspended_and_senseless_windows_close_nothing() -> None:
    assert (
        hours(window("a", suspend=True), window("b", "0 0 30 2 *"), window("c", timeZone="Moon/Tycho"))
        == set()
    )


def test_a_window_is_about_assets_by_name_or_by_label() -> None:
    other = Asset.model_validate({"metadata": {"name": "vm-2", "labels": {"env": "test"}}})
    by_label = window("w", assetNames=[], assetSelector={"matchLabels": {"env": "prod"}})
    assert [a.metadata.name for a in concerned(by_label, [other, ASSET])] == ["vm-1"]
    assert [
        a.metadata.name
        for a in concerned(
            window("w", assetSelector={"matchExpressions": [{"key": "env", "operator": "Exists"}]}),
            [other, ASSET],
        )
    ] == [
        "vm-1",
        "vm-2",
    ]


def test_windows_that_begin_together_count_together_however_far_one_looks() -> None:
    """An asset that never opens is not said to do so between two that begin at the same moment."""
    often = "30 */6 * * *"
    block, allow = (window(kind, often, "10m", kind=kind) for kind in ("Block", "Allow"))
    for allowing in range(1, 4):
        windows = [window("night", "0 1 * * *", "10m"), *[allow] * allowing, block]
        closure = Closures(ASSET, windows).at(DAY)
        assert closure is not None
        assert closure.until is None


some = st.builds(
    window,
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["0 1 * * *", "30 */6 * * *", "0 22 * * 6", "*/20 8-10 * * *", "0 0 1 7 *"]),
    st.sampled_from(["10m", "1h", "90m", "7h", "P2D"]),
    kind=st.sampled_from(["Block", "Allow"]),
)


@given(st.lists(some, max_size=4), st.integers(0, 7 * 24 * 60))
@settings(max_examples=12, deadline=None)
def test_where_it_is_said_to_open_or_close_it_does_and_not_before(
    windows: list[MaintenanceWindow], minute: int
) -> None:
    closings, now = Closures(ASSET, windows), DAY + datetime.timedelta(minutes=minute)
    closure = closings.at(now)
    change = closure.until if closure else closings.next(now)
    end = min(change or now + 48 * HOUR, now + 48 * HOUR)
    while now < end:
        assert (closings.at(now) is None) == (closure is None)
        now += datetime.timedelta(minutes=170)
    if change is not None:
        assert (closings.at(change) is None) != (closure is None)
