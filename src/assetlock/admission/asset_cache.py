"""The Assets as this process knows them: a watched cache, read anew where a decision shows it to be behind."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable, Mapping

from assetlock.admission.facts import AssetFacts, asset_facts
from assetlock.admission.review import Object, annotations_of
from assetlock.kube.api import Api
from assetlock.kube.errors import NotFound
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import ASSETS, NAMESPACES

FRESH_FOR = 90.0

Key = tuple[str, str]
Kind = tuple[str, str]
"""apiVersion and kind."""


class AssetCache:
    """Assets by namespace and name. ``reflector`` must run for ``known`` to know any.

    ``kinds_changed`` is set whenever there are targets of another kind, or none of one any more.
    """

    def __init__(self, api: Api, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[Key, AssetFacts] = {}
        self._claimants: dict[Kind, dict[Key, AssetFacts]] = {}
        self.kinds_changed = asyncio.Event()
        self.reflector = Reflector(api, ASSETS, on_replace=self._replace, on_event=self._change, clock=clock)

    @property
    def is_fresh(self) -> bool:
        """Whether the cache is whole, and the API server was heard of lately."""
        heard = self.reflector.last_activity
        return self.reflector.synced.is_set() and heard is not None and self._clock() - heard < FRESH_FOR

    def known(self, namespace: str, name: str) -> AssetFacts | None:
        """The asset as it was last seen."""
        return self._known.get((namespace, name))

    def names_in(self, namespace: str) -> list[str]:
        """The assets of a namespace that are known."""
        return [name for where, name in self._known if where == namespace]

    def expires(self, namespace: str, name: str) -> datetime.datetime | None:
        """When the first of its holders' locks ends, as it was last seen."""
        asset = self.known(namespace, name)
        moments = (holder.told.until for holder in asset.holders) if asset else ()
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Of which kinds there are targets."""
        return frozenset(self._claimants)

    def locked_with(self, group: str, kind: str) -> dict[Key, AssetFacts]:
        """The assets that somebody holds, of those with targets of a kind, whatever its version."""
        found: dict[Key, AssetFacts] = {}
        for (api_version, other), claimants in self._claimants.items():
            if (api_version.rpartition("/")[0], other) == (group, kind):
                found |= {key: asset for key, asset in claimants.items() if asset.holders}
        return found

    async def read(self, namespace: str, name: str) -> AssetFacts | None:
        """The asset as it is now; ``None`` if there is none."""
        if not (_can_be(namespace) and _can_be(name)):
            return None
        try:
            return asset_facts(await self._api.get(ASSETS, namespace, name))
        except NotFound:
            return None

    async def locked_in(self, namespace: str) -> dict[str, AssetFacts]:
        """The assets in a namespace that somebody holds, as they are now, by name."""
        if not _can_be(namespace):
            return {}
        found = await self._api.list(ASSETS, namespace)
        facts = {item["metadata"]["name"]: asset_facts(item) for item in found.items}
        return {name: asset for name, asset in facts.items() if asset.holders}

    async def annotations_of(self, namespace: str) -> Mapping[str, str]:
        """What is written on a namespace now; nothing if there is none."""
        if not _can_be(namespace):
            return {}
        try:
            return annotations_of(await self._api.get(NAMESPACES, None, namespace, metadata_only=True))
        except NotFound:
            return {}

    def _replace(self, items: list[dict[str, object]], _: str) -> None:
        before = self.kinds
        self._known = {_key(item): asset_facts(item) for item in items}
        self._claimants = {}
        for key, asset in self._known.items():
            self._file(key, asset)
        if self.kinds != before:
            self.kinds_changed.set()

    def _change(self, kind: str, item: Object) -> None:
        key, before = _key(item), self.kinds
        for gone in _kinds_of(self._known.pop(key, None)):
            self._claimants[gone].pop(key)
            if not self._claimants[gone]:
                del self._claimants[gone]
        if kind != "DELETED":
            self._known[key] = asset_facts(item)
            self._file(key, self._known[key])
        if self.kinds != before:
            self.kinds_changed.set()

    def _file(self, key: Key, asset: AssetFacts) -> None:
        for kind in _kinds_of(asset):
            self._claimants.setdefault(kind, {})[key] = asset


def _kinds_of(asset: AssetFacts | None) -> set[Kind]:
    return {(target.api_version, target.kind) for target in asset.targets} if asset else set()


def _can_be(name: str) -> bool:
    """Whether there can be an object of this name: what a review says may be anything."""
    return name not in ("", ".", "..") and "/" not in name and "%" not in name


def _key(asset: Object) -> Key:
    metadata = asset["metadata"]
    return metadata["namespace"], metadata["name"]
