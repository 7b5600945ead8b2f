"""Whatever windows there are: nobody is let in while they close the asset, and who waits is once they do not."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assetlock.core.decide import decide
from assetlock.core.windows.closures import Closures
from tests.core.world import START, World

HOURS = 8


@st.composite
def window(draw: st.DrawFn) -> dict[str, Any]:
    start = draw(st.integers(0, HOURS - 1))
    end = draw(st.integers(start + 1, HOURS))
    return {
        "start": (START + datetime.timedelta(hours=start)).isoformat(),
        "end": (START + datetime.timedelta(hours=end)).isoformat(),
        "kind": draw(st.sampled_from(["Block", "Block", "Allow"])),
        "whenHeld": draw(st.sampled_from(["Skip", "Skip", "Wait", "Revoke"])),
    }


def has_window(world: World) -> bool:
    """Whether a window holds the asset, and has been told so."""
    return any(
        world.state(name) == "Held" and lock["spec"]["mode"] == "Maintenance"
        for name, lock in world.locks.items()
    )


@given(st.lists(window(), min_size=1, max_size=4), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_who_waits_is_let_in_whenever_the_windows_are_open_and_never_else(
    windows: list[dict[str, Any]], capacity: int
) -> None:
    world = World()
    world.make_asset("app", capacity=capacity)
    world.make_target("app")
    for number, spec in enumerate(windows):
        world.schedule(f"freeze-{number}", **spec)
    while world.now < START + datetime.timedelta(hours=HOURS):
        world.settle()
        observed = world.observe()
        closed = Closures(observed.asset, observed.windows).at(world.now) is not None
        assert has_window(world) == closed
        world.ask("first", "alice", wait="24h", ttl="1m")
        world.settle()
        assert world.state("first") == ("Pending" if closed else "Held")
        world.withdraw("first")
        world.settle()
        wake = decide(world.observe()).wake_at
        if wake is None:
            break
        world.now = wake
