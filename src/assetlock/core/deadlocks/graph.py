"""Deadlocks among AssetLocks: somebody holds what another waits for who holds what the first waits for.

Whoever holds a lock is taken to keep it until all that it waits for has been had. What comes free by itself, such as
the lock of somebody who waits for nothing, is thought away first; what is left then waits for itself, or behind what
does. Only what is held now counts: what would come of a lock that waits, once it is had, is not foreseen.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

Flow = Hashable
"""Who holds and waits as one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """A lock that is held, or waits, as far as deadlocks go.

    ``whole``: it needs, or has, all slots of its assets. ``rank`` is its place in all lines, ``age`` tells when it
    was made. ``sure``: whatever has its ``flow`` is one and the same, so that waiting for that is waiting for itself.
    """

    name: str
    who: str
    flow: Flow
    assets: tuple[str, ...]
    whole: bool
    held: bool
    rank: tuple[object, ...] = ()
    age: tuple[datetime.datetime, str] = (datetime.datetime.min, "")
    sure: bool = True

    def __str__(self) -> str:
        return f"{self.who} ({self.name})"


@dataclasses.dataclass(frozen=True, slots=True)
class Deadlock:
    """A cycle: each of these waits for the next one, or holds until that is served; the last for the first."""

    cycle: tuple[Claim, ...]
    victim: Claim

    def __str__(self) -> str:
        """What each of those who wait is waiting for, beginning with the victim."""
        steps = []
        for claim, following in zip(self.cycle, (*self.cycle[1:], self.cycle[0]), strict=True):
            if not claim.held:
                asset = next(name for name in claim.assets if name in following.assets)
                verb = "has" if following.held else "is ahead of it in the queue of"
                steps.append(f"{claim} waits for asset {asset}, which {following} {verb}")
        return "; ".join(steps)


def find(claims: Iterable[Claim], capacities: Mapping[str, int]) -> Deadlock | None:
    """The deadlock that the youngest lock is in that waits in one; ``capacities`` are those above 1."""
    graph = _Graph(list(claims), capacities)
    stuck = graph.stuck()
    waiting = (claim for claim in graph.in_cycles(stuck) if not claim.held)
    victim = max(waiting, key=lambda claim: claim.age, default=None)
    return None if victim is None else Deadlock(graph.cycle_through(victim, stuck), victim)


class _Graph:
    def __init__(self, claims: Sequence[Claim], capacities: Mapping[str, int]) -> None:
        self._claims = claims
        self._capacities = capacities
        self._holders: defaultdict[str, list[Claim]] = defaultdict(list)
        self._waits_of: defaultdict[Flow, list[Claim]] = defaultdict(list)
        self._before: defaultdict[Claim, list[Claim]] = defaultdict(list)
        lines: defaultdict[str, list[Claim]] = defaultdict(list)
        for claim in claims:
            for asset in claim.assets:
                (self._holders if claim.held else lines)[asset].append(claim)
            if not claim.held:
                self._waits_of[claim.flow].append(claim)
        for line in lines.values():
            line.sort(key=lambda claim: claim.rank)
            for ahead, behind in itertools.pairwise(line):
                self._before[behind].append(ahead)

    def stuck(self) -> set[Claim]:
        """Those that will not come on by themselves, however long all others are let go on."""
        stuck = set(self._claims)
        waited_for_by: defaultdict[Claim, list[Claim]] = defaultdict(list)
        for claim in self._claims:
            for following in self._next(claim):
                waited_for_by[following].append(claim)
        to_look_at = deque(self._claims)
        while to_look_at:
            claim = to_look_at.popleft()
            if claim in stuck and self._comes_on(claim, stuck):
                stuck.remove(claim)
                to_look_at.extend(waited_for_by[claim])
        return stuck

    def in_cycles(self, stuck: Collection[Claim]) -> set[Claim]:
        """Those of these that wait for themselves, and not only behind one that does."""
        following = {claim: [other for other in self._next(claim) if other in stuck] for claim in stuck}
        return _on_cycles(following)

    def _comes_on(self, claim: Claim, stuck: set[Claim]) -> bool:
        if claim.held:
            return not any(waiting in stuck for waiting in self._kept_for(claim))
        if any(ahead in stuck for ahead in self._before[claim]):
            return False
        return all(self._comes_free(claim, asset, stuck) for asset in claim.assets)

    def _comes_free(self, claim: Claim, asset: str, stuck: set[Claim]) -> bool:
        stay = [holder for holder in self._in_the_way(claim, asset) if holder in stuck]
        if claim.whole or any(holder.whole for holder in stay):
            return not stay
        return len(stay) < self._capacities.get(asset, 1)

    def _in_the_way(self, claim: Claim, asset: str) -> Iterator[Claim]:
        return (h for h in self._holders[asset] if h.flow != claim.flow or (h.sure and claim.sure))

    def _kept_for(self, held: Claim) -> Iterator[Claim]:
        """What its holder waits for and so keeps it. Who asks for an asset twice is two, unless that is sure."""
        for waiting in self._waits_of[held.flow]:
            if (held.sure and waiting.sure) or not set(held.assets) & set(waiting.assets):
                yield waiting

    def _next(self, claim: Claim) -> Iterator[Claim]:
        """What this one waits for, or is kept for."""
        if claim.held:
            yield from self._kept_for(claim)
            return
        for asset in claim.assets:
            yield from self._in_the_way(claim, asset)
        yield from self._before[claim]

    def cycle_through(self, start: Claim, stuck: set[Claim]) -> tuple[Claim, ...]:
        """The shortest way from one back to itself among these; empty if there is none."""
        came_from: dict[Claim, Claim] = {}
        waiting = deque([start])
        while waiting:
            claim = waiting.popleft()
            for following in self._next(claim):
                if following == start:
                    return _way(came_from, start, claim)
                if following in stuck and following not in came_from:
                    came_from[following] = claim
                    waiting.append(following)
        return ()


def _on_cycles(following: Mapping[Claim, Sequence[Claim]]) -> set[Claim]:
    """Which of these lead back to themselves: Kosaraju's two walks, without recursion as lines are long."""
    leading: defaultdict[Claim, list[Claim]] = defaultdict(list)
    for claim, others in following.items():
        for other in others:
            leading[other].append(claim)
    found, seen = set[Claim](), set[Claim]()
    for root in reversed(_finished(following)):
        if root in seen:
            continue
        seen.add(root)
        component, to_look_at = [root], [root]
        while to_look_at:
            for other in leading[to_look_at.pop()]:
                if other not in seen:
                    seen.add(other)
                    component.append(other)
                    to_look_at.append(other)
        if len(component) > 1 or root in following[root]:
            found.update(component)
    return found


def _finished(following: Mapping[Claim, Sequence[Claim]]) -> list[Claim]:
    """All of these, each after those that can be reached from it and were not before."""
    order, seen = list[Claim](), set[Claim]()
    for root in following:
        way = [] if root in seen else [(root, iter(following[root]))]
        seen.add(root)
        while way:
            claim, others = way[-1]
            other = next((each for each in others if each not in seen), None)
            if other is None:
                order.append(claim)
                way.pop()
            else:
                seen.add(other)
                way.append((other, iter(following[other])))
    return order


def _way(came_from: Mapping[Claim, Claim], start: Claim, end: Claim) -> tuple[Claim, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
