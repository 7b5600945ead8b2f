"""Breadth first through everything that can happen, each state once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from tests.exhaustive.promises import BrokenPromise, check_future
from tests.exhaustive.state import State
from tests.exhaustive.steps import begun, start, steps


@dataclasses.dataclass(frozen=True, slots=True)
class Mix:
    """How many slots the asset has, and who wants it: ``lock`` the whole, ``read`` one slot, ``job`` a Lease.

    ``care`` closes it for maintenance, as does ``window``, again and again, with what it does to who holds it.
    ``held``: the first of them has it from the start, so that hand-overs are near.
    """

    capacity: int
    clients: tuple[str, ...]
    held: bool = False


MIXES = {
    "three Exclusive locks": Mix(1, ("lock-a", "lock-b", "lock-c")),
    "two Exclusive locks and a Lease made by hand": Mix(1, ("lock-a", "lock-b", "job-c")),
    "two slots: an Exclusive lock and two Shared ones": Mix(2, ("lock-a", "read-a", "read-b")),
    "two slots: an Exclusive lock, a Shared one, and a Lease made by hand": Mix(
        2, ("lock-a", "read-a", "job-c")
    ),
    "three Exclusive locks, one of them held": Mix(1, ("lock-a", "lock-b", "lock-c"), held=True),
    "two Exclusive locks, one of them held, and a window that waits": Mix(
        1, ("lock-a", "lock-b", "window Wait"), held=True
    ),
    "two Exclusive locks, and a window that skips": Mix(1, ("lock-a", "lock-b", "window Skip")),
    "an Exclusive lock that is held, a Lease made by hand, and a window that revokes": Mix(
        1, ("lock-a", "job-c", "window Revoke"), held=True
    ),
    "an Exclusive lock, one for maintenance, and a window that revokes": Mix(
        1, ("lock-a", "care-a", "window Revoke")
    ),
    "two slots: an Exclusive lock, a Shared one, and a window that waits": Mix(
        2, ("lock-a", "read-a", "window Wait")
    ),
}
CameFrom = dict[State, tuple[State, str] | None]


class Found(AssertionError):
    """A promise is broken; tells the shortest way there. A lock is called by its place in line at each step."""


@dataclasses.dataclass
class Explored:
    """How many states were new at each depth, and whether that is all there is."""

    new: list[int] = dataclasses.field(default_factory=list)
    transitions: int = 0
    complete: bool = False

    @property
    def states(self) -> int:
        """All states that were seen."""
        return sum(self.new)


def explore(
    mix: Mix,
    *,
    most_depth: int,
    report: Callable[[int, int], None] = lambda _depth, _new: None,
) -> Explored:
    """Visit every state up to this depth. Raises Found with the steps that lead to a broken promise."""
    first = begun(start(mix.capacity), mix.clients[0]) if mix.held else start(mix.capacity)
    came_from: CameFrom = {first: None}
    level = [first]
    explored = Explored([1])
    for depth in range(1, most_depth + 1):
        following = []
        for state in level:
            for label, after in _visited(state, mix.clients, came_from):
                explored.transitions += 1
                if after not in came_from:
                    came_from[after] = (state, label)
                    following.append(after)
        explored.new.append(len(following))
        report(depth, len(following))
        level = following
        if not level:
            explored.complete = True
            break
    return explored


def _visited(state: State, clients: Sequence[str], came_from: CameFrom) -> Iterator[tuple[str, State]]:
    """The steps from this state, judged."""
    label = "all that follows"
    try:
        check_future(state.world)
        for label, following in steps(state, clients):
            yield label, following()
    except BrokenPromise as broken:
        raise Found("\n".join([*_way_to(state, came_from), f"{label}: {broken}"])) from broken


def _way_to(state: State, came_from: CameFrom) -> list[str]:
    way = []
    while (before := came_from[state]) is not None:
        state, label = before
        way.append(label)
    return way[::-1]
