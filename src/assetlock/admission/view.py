"""The Assets as this process knows them: a watched cache, read anew where a decision shows it to be behind."""

from __future__ import annotations

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


class AssetView:
    """Assets by namespace and name. ``reflector`` must run for ``known`` to know any."""

    def __init__(self, api: Api, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[Key, AssetFacts] = {}
        self.reflector = Reflector(api, ASSETS, on_replace=self._replace, on_event=self._change, clock=clock)

    @property
    def is_fresh(self) -> bool:
        """Whether the cache is whole, and the API server was heard of lately."""
        heard = self.reflector.last_activity
        return self.reflector.synced.is_set() and heard is not None and self._clock() - heard < FRESH_FOR

    def known(self, namespace: str, name: str) -> AssetFacts | None:
        """The asset as it was last seen."""
        return self._known.get((namespace, name))

    async def read(self, namespace: str, name: str) -> AssetFacts | None:
        """The asset as it is now; ``None`` if there is none."""
        try:
            return asset_facts(await self._api.get(ASSETS, namespace, name))
        except NotFound:
            return None

    async def locked_in(self, namespace: str) -> dict[str, AssetFacts]:
        """The assets in a namespace that somebody holds, as they are now, by name."""
        found = await self._api.list(ASSETS, namespace)
        facts = {item["metadata"]["name"]: asset_facts(item) for item in found.items}
        return {name: asset for name, asset in facts.items() if asset.holders}

    async def annotations_of(self, namespace: str) -> Mapping[str, str]:
        """What is written on a namespace now; nothing if there is none."""
        try:
            return annotations_of(await self._api.get(NAMESPACES, None, namespace, metadata_only=True))
        except NotFound:
            return {}

    def _replace(self, items: list[dict[str, object]], _: str) -> None:
        self._known = {_key(item): asset_facts(item) for item in items}

    def _change(self, kind: str, item: Object) -> None:
        if kind == "DELETED":
            self._known.pop(_key(item), None)
        else:
            self._known[_key(item)] = asset_facts(item)


def _key(asset: Object) -> Key:
    metadata = asset["metadata"]
    return metadata["namespace"], metadata["name"]
