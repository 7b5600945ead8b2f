"""Where objects may carry an asset's stamp: the Asset lists it before any is stamped there.

A locked asset may come to name nothing there any more, and its controller may die: by this list whoever takes over
finds the stamps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from assetlock.core.observation import ObservedTarget
from assetlock.core.situation import Situation
from assetlock.model.asset import MOST_PLACES, FencedPlace

_Place: TypeAlias = tuple[str, str, str | None]
"""API version, kind and namespace, as in a FencedPlace."""


def fenced(situation: Situation) -> list[FencedPlace]:
    """The places to be listed while somebody holds the asset: once listed they stay, until it is locked anew."""
    asset = situation.observation.asset
    listed = _listed(situation)
    needed = set(_needed(situation, listed))
    locked = asset is not None and bool(asset.status.holders)
    grown = listed | needed if locked else needed
    kept = grown if len(grown) <= MOST_PLACES else needed
    return [
        FencedPlace(api_version=api_version, kind=kind, namespace=namespace)
        for api_version, kind, namespace in sorted(kept, key=_order)
    ]


def lacks_any(situation: Situation) -> bool:
    """Whether a target is to be stamped in a place that the Asset does not list."""
    targets = situation.observation.targets
    return not {_place(t) for t in targets if t.wanted and not t.problem} <= _listed(situation)


def _needed(situation: Situation, listed: Collection[_Place]) -> Iterator[_Place]:
    """Where targets are, and strays with the stamp. What can't be looked at now may have one where it is listed."""
    for observed in situation.observation.targets:
        if observed.problem:
            yield from (place for place in listed if place[:2] == _place(observed)[:2])
        elif observed.wanted or situation.stamp_key in observed.annotations:
            yield _place(observed)


def _listed(situation: Situation) -> set[_Place]:
    asset = situation.observation.asset
    listed = asset.status.fenced_places if asset else []
    return {(place.api_version, place.kind, place.namespace) for place in listed}


def _place(observed: ObservedTarget) -> _Place:
    return observed.target.api_version, observed.target.kind, observed.namespace


def _order(place: _Place) -> tuple[str, str, str]:
    api_version, kind, namespace = place
    return api_version, kind, namespace or ""
