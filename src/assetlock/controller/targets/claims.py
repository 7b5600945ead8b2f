"""Which assets an object matters to: those that name it, select it, or have their stamp on it."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from assetlock.controller.keys import AssetKey
from assetlock.core import names
from assetlock.model.selector import LabelSelector


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where targets of one kind are, whatever version they are named by.

    ``namespace`` is ``None`` for cluster-scoped kinds.
    """

    group: str
    kind: str
    namespace: str | None


Claim = tuple[Place, str | LabelSelector | None]
"""One object by its name, or all that a selector selects, or only what the asset has stamped there."""


class Claims:
    """What each asset claims, and the other way round."""

    def __init__(self) -> None:
        self._of: dict[AssetKey, set[Claim]] = {}
        self._on: defaultdict[Claim, set[AssetKey]] = defaultdict(set)
        self._in: defaultdict[Place, int] = defaultdict(int)

    def add(self, key: AssetKey, claim: Claim) -> None:
        """The asset claims this."""
        if key not in self._on[claim]:
            self._on[claim].add(key)
            self._of.setdefault(key, set()).add(claim)
            self._in[claim[0]] += 1

    def keep(self, key: AssetKey, claims: Collection[Claim]) -> list[Claim]:
        """The asset claims no more than these; gives what nobody claims any longer."""
        return [claim for claim in self._of.get(key, set()) - set(claims) if self._drop(key, claim)]

    def keep_assets(self, keys: Collection[AssetKey]) -> list[Claim]:
        """There are no assets but these; gives what nobody claims any longer."""
        gone = self._of.keys() - set(keys)
        return [claim for key in gone for claim in self.keep(key, ())]

    def on(self, place: Place, name: str, selectors: Iterable[LabelSelector]) -> set[AssetKey]:
        """The assets that name this object, or have one of these selectors."""
        claims: list[Claim] = [(place, name), *((place, selector) for selector in selectors)]
        return {key for claim in claims for key in self._on.get(claim, ())}

    def in_place(self, place: Place) -> set[AssetKey]:
        """The assets that claim anything there."""
        return {key for key, claims in self._of.items() if any(where == place for where, _ in claims)}

    def assets(self) -> list[AssetKey]:
        """The assets that claim anything."""
        return list(self._of)

    def is_claimed(self, place: Place) -> bool:
        """Whether any asset claims anything there."""
        return self._in.get(place, 0) > 0

    def _drop(self, key: AssetKey, claim: Claim) -> bool:
        self._on[claim].discard(key)
        self._of[key].discard(claim)
        self._in[claim[0]] -= 1
        if not self._of[key]:
            del self._of[key]
        if self._on[claim]:
            return False
        del self._on[claim]
        return True


def stamping(uid: str, annotations: Mapping[str, str]) -> Iterator[AssetKey]:
    """The assets whose stamps count on the object with this UID: copies from another object do not."""
    for annotation, text in annotations.items():
        if annotation.endswith(names.STAMP_SUFFIX) and text.split("\n", 1)[0] == uid:
            claimant = names.claimant(annotation)
            if claimant is not None:
                yield AssetKey(*claimant)
