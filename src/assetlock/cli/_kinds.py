"""Kinds of objects that assets name as targets, found in the cluster by what people call them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assetlock.client.api import Api, Object


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, its path, and the words that kubectl takes for it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    words: frozenset[str]

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """The path of the collection, or of an object."""
        import urllib.parse

        where = f"/namespaces/{urllib.parse.quote(namespace)}" if namespace and self.namespaced else ""
        return f"{_group_path(self.api_version)}{where}/{self.plural}{f'/{urllib.parse.quote(name)}' if name else ''}"


def targeted(api: Api, assets: Iterable[Object]) -> Iterator[Kind]:
    """The kinds that assets have targets of, or had when they were last locked."""
    named: set[tuple[str, str]] = set()
    for asset in assets:
        places = [
            *asset.get("spec", {}).get("targets", ()),
            *(asset.get("status") or {}).get("fencedPlaces", ()),
        ]
        named |= {(place["apiVersion"], place["kind"]) for place in places}
    for api_version in sorted({version for version, _ in named}):
        for found in _served(api, api_version):
            if (api_version, found["kind"]) in named:
                yield _kind(api_version, found)


def _served(api: Api, api_version: str) -> list[dict[str, Any]]:
    from assetlock.client.api import NotFound

    try:
        resources: list[dict[str, Any]] = api.get(_group_path(api_version))["resources"]
    except NotFound:
        return []
    return [found for found in resources if "/" not in found["name"]]


def _kind(api_version: str, found: dict[str, Any]) -> Kind:
    plain = {
        found["name"],
        found.get("singularName", ""),
        found["kind"].lower(),
        *found.get("shortNames", ()),
    }
    group = api_version.rpartition("/")[0]
    words = {*plain, *(f"{word}.{group}" for word in plain if group)} - {""}
    return Kind(api_version, found["kind"], found["name"], found["namespaced"], frozenset(words))


def _group_path(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
