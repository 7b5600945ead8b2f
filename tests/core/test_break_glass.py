"""Broken glass is shown for an hour, whatever else goes on with the asset."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetlock.core.decide import decide
from assetlock.core.fence import break_glass
from assetlock.model.asset import BrokenGlass
from tests.core.world import World

START = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
breakages = st.builds(
    BrokenGlass,
    identity=st.sampled_from(["oncall", "root"]),
    time=st.integers(0, 7200).map(lambda seconds: START + datetime.timedelta(seconds=seconds)),
    operation=st.sampled_from(["UPDATE", "DELETE"]),
    kind=st.just("ConfigMap"),
    name=st.sampled_from(["a", "b", "c", "d"]),
    namespace=st.sampled_from(["shop", None]),
)


@given(st.lists(breakages))
def test_the_latest_comes_first_and_nothing_comes_twice(done: list[BrokenGlass]) -> None:
    known: list[BrokenGlass] = []
    for entry in done:
        known = break_glass.with_another(known, entry)
        assert known[0] == entry
        assert len(known) <= break_glass.MOST_SHOWN
        writes = [entry.model_copy(update={"time": START}) for entry in known]
        assert all(writes.count(write) == 1 for write in writes)


@given(st.lists(breakages, max_size=10), st.integers(0, 11_000))
def test_at_the_deadline_something_goes_and_before_it_nothing(known: list[BrokenGlass], seconds: int) -> None:
    now = START + datetime.timedelta(seconds=seconds)
    shown = break_glass.shown(known, now)
    due = break_glass.next_deadline(shown)
    assert due is None if not shown else due > now
    if due is not None:
        assert break_glass.shown(shown, due - datetime.timedelta(seconds=1)) == shown
        assert len(break_glass.shown(shown, due)) < len(shown)


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app")
    world.make_target("app")
    world.ask("first")
    world.settle()
    assert world.asset is not None
    write = {"identity": "oncall", "operation": "UPDATE", "kind": "ConfigMap", "name": "app"}
    world.asset["status"]["brokenGlass"] = [{**write, "time": world.now.isoformat()}]
    return world


def shown(world: World) -> list[str]:
    assert world.asset is not None
    return [entry["name"] for entry in world.asset["status"]["brokenGlass"]]


def test_it_stays_through_the_end_of_the_lock(world: World) -> None:
    world.withdraw("first")
    assert world.settle()
    assert shown(world) == ["app"]


def test_it_goes_by_itself_when_its_hour_is_over(world: World) -> None:
    world.withdraw("first")
    world.settle()
    due = decide(world.observe()).wake_at
    assert due == world.now + datetime.timedelta(hours=1)
    world.pass_time(3599)
    assert world.settle() == []
    world.pass_time(1)
    world.settle()
    assert shown(world) == []
