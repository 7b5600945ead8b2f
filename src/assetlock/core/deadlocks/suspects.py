"""Which AssetLocks of a namespace may be in a deadlock at all: kept as locks change, so that a search is short.

A deadlock leads from an asset over somebody who has it and waits, or over a lock for several assets, to another
asset, and so on back to the first. Only locks on assets on such ways are searched; most often there are none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from assetlock.core.deadlocks.decide import claim_of
from assetlock.core.deadlocks.graph import Claim, Flow
from assetlock.model.assetlock import AssetLock

_Ways = dict[Hashable, set[Hashable]]


class Suspects:
    """The locks of a namespace that hold or wait, by whose they are and by asset."""

    def __init__(self) -> None:
        self._claims: dict[str, tuple[Claim, AssetLock]] = {}
        self._held: defaultdict[Flow, dict[str, Claim]] = defaultdict(dict)
        self._waiting: defaultdict[Flow, dict[str, Claim]] = defaultdict(dict)
        self._joint: dict[str, Claim] = {}
        self._on: defaultdict[str, dict[str, Flow]] = defaultdict(dict)

    def add(self, lock: AssetLock) -> None:
        """Take in a lock in place of an earlier version."""
        uid = lock.metadata.uid
        self.discard(uid)
        claim = claim_of(lock)
        if claim is None:
            return
        self._claims[uid] = claim, lock
        (self._held if claim.held else self._waiting)[claim.flow][uid] = claim
        for asset in claim.assets:
            self._on[asset][uid] = claim.flow
        if len(claim.assets) > 1 and not claim.held:
            self._joint[uid] = claim

    def discard(self, uid: str) -> None:
        """Take a lock out, if it is there."""
        if uid not in self._claims:
            return
        claim, _ = self._claims.pop(uid)
        of_flow = self._held if claim.held else self._waiting
        of_flow[claim.flow].pop(uid)
        if not of_flow[claim.flow]:
            del of_flow[claim.flow]
        for asset in claim.assets:
            self._on[asset].pop(uid)
            if not self._on[asset]:
                del self._on[asset]
        self._joint.pop(uid, None)

    def __iter__(self) -> Iterator[AssetLock]:
        """The locks that a search for a deadlock has to look at."""
        left = _on_the_way_back(self._ways())
        assets = [asset for asset in self._on if asset in left]
        uids = dict.fromkeys(uid for asset in assets for uid in self._on[asset])
        if not any((flow,) in left for flow in self._held) or self._is_one_of_many(uids):
            return iter(())
        return (self._claims[uid][1] for uid in uids)

    def _is_one_of_many(self, uids: dict[str, None]) -> bool:
        """Whether all belong to one who may be several: nobody is held up by what may be another of his."""
        claims = (self._claims[uid][0] for uid in uids)
        return len({claim.flow if not claim.sure else claim.name for claim in claims}) <= 1

    def _ways(self) -> _Ways:
        """From assets to who has them and waits, from there to what is waited for; between assets wanted together."""
        ways: _Ways = defaultdict(set)
        for flow in self._held.keys() & self._waiting.keys():
            for claim in self._held[flow].values():
                for asset in claim.assets:
                    ways[asset].add((flow,))
            for claim in self._waiting[flow].values():
                ways[flow,].update(claim.assets)
        for uid, claim in self._joint.items():
            for asset in claim.assets:
                ways[asset].add((uid, claim))
                ways[uid, claim].add(asset)
        return ways


def _on_the_way_back(ways: _Ways) -> set[Hashable]:
    """What is left when all that leads nowhere, or that nothing leads to, is taken out again and again."""
    leading: _Ways = defaultdict(set)
    for one, others in ways.items():
        for other in others:
            leading[other].add(one)
    left = {*ways, *leading}
    degrees = [
        (of, back, {one: len(of.get(one, ())) for one in left})
        for of, back in ((ways, leading), (leading, ways))
    ]
    gone = [one for one in left if not all(degree[one] for _, _, degree in degrees)]
    while gone:
        one = gone.pop()
        if one not in left:
            continue
        left.remove(one)
        for _, back, degree in degrees:
            for other in back.get(one, ()):
                degree[other] -= 1
                if not degree[other]:
                    gone.append(other)
    return left
