"""Gathering the pages of a list: whole, each object once.

Pure: `Listing` is fed page after page. The server may repeat an item (the later copy counts) and may send an
empty page that goes on. The list's resourceVersion is that of its first page: a watch from there misses
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from assetlock.kube.errors import TransportError
from assetlock.kube.resources import Object, Resource


@dataclass(frozen=True, slots=True)
class ObjectList:
    """All objects of a collection at one version of it."""

    items: list[Object]
    resource_version: str

    def __iter__(self) -> Iterator[Object]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(slots=True)
class Listing:
    """The pages seen so far."""

    resource: Resource
    metadata_only: bool = False
    resource_version: str = ""
    _items: dict[str, Object] = field(default_factory=dict)

    def add(self, page: Object) -> str:
        """Take in a page; the token for the next one, or nothing if it was the last."""
        metadata = page.get("metadata")
        items = page.get("items") or []
        if not isinstance(metadata, dict) or not isinstance(items, list):
            raise TransportError(f"{self.resource.plural}: the answer is not a list of objects")
        self.resource_version = self.resource_version or str(metadata.get("resourceVersion") or "")
        for item in items:
            key = _identity(self.resource, item)
            self._items[key] = self._typed(item)
        return str(metadata.get("continue") or "")

    def whole(self) -> ObjectList:
        """The list, once the last page is in."""
        return ObjectList(list(self._items.values()), self.resource_version)

    def _typed(self, item: Object) -> Object:
        """The item with its kind, which lists of built-in kinds leave out of their items.

        What has metadata only is not given the kind of a whole object: written back, it would empty one.
        """
        if not self.metadata_only:
            item.setdefault("apiVersion", self.resource.api_version)
            item.setdefault("kind", self.resource.kind)
        return item


def _identity(resource: Resource, item: object) -> str:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict):
        raise TransportError(f"{resource.plural}: an item of the list is not an object")
    return str(metadata.get("uid") or f"{metadata.get('namespace')}/{metadata.get('name')}")
