"""Assets as the API server's watch shows them, in order, for lists: one watch, however many callers ask."""

from __future__ import annotations

import bisect
import dataclasses
import logging
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from assetlock.kube.api import Api
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import ASSETS
from assetlock.model.asset import Asset

Key = tuple[str, str]
"""Namespace and name."""

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Filter:
    """Which assets are wanted; what is ``None`` does not matter. ``text`` is looked for in names and people."""

    namespace: str
    lock_state: str | None = None
    type: str | None = None
    holder: str | None = None
    text: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    def takes(self, asset: Asset) -> bool:
        """Whether the asset is one of them."""
        spec, status = asset.spec, asset.status
        return (
            (self.lock_state is None or status.lock_state == self.lock_state)
            and (self.type is None or spec.type == self.type)
            and (self.holder is None or any(holder.identity == self.holder for holder in status.holders))
            and all(str(spec.metadata.get(key)) == value for key, value in self.metadata)
            and (self.text is None or self.text.casefold() in _text(asset))
        )


def _text(asset: Asset) -> str:
    spec = asset.spec
    people = (holder.identity for holder in asset.status.holders)
    return "\n".join((asset.metadata.name, spec.type, spec.display_name or "", *people)).casefold()


class AssetIndex:
    """All assets by namespace and name, in that order. ``reflector`` must run."""

    def __init__(self, api: Api) -> None:
        self.reflector = Reflector(api, ASSETS, on_replace=self._replace, on_event=self._change)
        self._known: dict[Key, Asset] = {}
        self._order: list[Key] = []

    def find(self, wanted: Filter) -> Iterator[Asset]:
        """The assets of a namespace that the filter takes, by name."""
        first, end = self._start(wanted.namespace), self._start(wanted.namespace + "\0")
        for key in self._order[first:end]:
            asset = self._known[key]
            if wanted.takes(asset):
                yield asset

    def _start(self, namespace: str) -> int:
        return bisect.bisect_left(self._order, (namespace, ""))

    def _replace(self, items: list[dict[str, Any]], _: str) -> None:
        found = (_parsed(item) for item in items)
        self._known = {_key(asset): asset for asset in found if asset is not None}
        self._order = sorted(self._known)

    def _change(self, kind: str, item: dict[str, Any]) -> None:
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        asset = None if kind == "DELETED" else _parsed(item)
        if asset is not None:
            if key not in self._known:
                bisect.insort(self._order, key)
            self._known[key] = asset
        elif self._known.pop(key, None) is not None:
            self._order.remove(key)


def _key(asset: Asset) -> Key:
    return asset.metadata.namespace or "", asset.metadata.name


def _parsed(item: dict[str, Any]) -> Asset | None:
    """The asset; ``None`` for one that can't be read, which then is in no list."""
    try:
        return Asset.model_validate(item)
    except (ValidationError, RecursionError) as error:
        log.warning(
            "an Asset can't be read", extra={"asset": item["metadata"].get("name"), "why": str(error)}
        )
        return None
