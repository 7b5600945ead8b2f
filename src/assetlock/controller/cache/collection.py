"""The latest known version of each object of one kind, in whatever order they come.

A version never replaces a later one, and what was deleted does not come back by an older event. resourceVersions are
compared as numbers, which Kubernetes guarantees for its own storage since 1.35 and etcd always gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.meta import ObjectMeta
from assetlock.model.window import MaintenanceWindow


class _HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


Model = TypeVar("Model", Asset, AssetLock, Lease, MaintenanceWindow)


class Collection(Generic[Model]):
    """The objects of one kind, by namespace and name."""

    def __init__(self, model: type[Model]) -> None:
        self._model: type[Model] = model
        self._objects: dict[tuple[str, str], Model] = {}
        self._gone: dict[tuple[str, str], int] = {}

    def get(self, namespace: str, name: str) -> Model | None:
        """The latest known version; ``None`` when there is no such object."""
        return self._objects.get((namespace, name))

    def __iter__(self) -> Iterator[Model]:
        return iter(self._objects.values())

    def put(self, raw: dict[str, Any]) -> tuple[Model | None, Model | None]:
        """Take in a version; gives what was known before and what is known now."""
        meta = raw["metadata"]
        where, version = (meta.get("namespace") or "", meta["name"]), int(meta["resourceVersion"])
        old = self._objects.get(where)
        if version <= self._gone.get(where, -1) or (old is not None and version <= version_of(old)):
            return old, old
        new = self._model.model_validate(raw)
        self._gone.pop(where, None)
        self._objects[where] = new
        return old, new

    def remove(self, namespace: str, name: str, version: int) -> Model | None:
        """Take in that the object was gone at ``version``; gives what was known before, if it is gone now."""
        where = (namespace, name)
        old = self._objects.get(where)
        if old is not None and version_of(old) > version:
            return None
        self._gone[where] = max(version, self._gone.get(where, -1))
        return self._objects.pop(where, None)

    def missing_from(self, raws: Iterable[dict[str, Any]], version: int) -> list[Model]:
        """What a whole list of ``version`` lacks although it is not newer; tombstones that old are dropped."""
        listed = {(raw["metadata"].get("namespace", ""), raw["metadata"]["name"]) for raw in raws}
        self._gone = {where: gone for where, gone in self._gone.items() if gone > version}
        return [o for where, o in self._objects.items() if where not in listed and version_of(o) <= version]


def version_of(model: _HasMetadata) -> int:
    """Its resourceVersion as a number."""
    return int(model.metadata.resource_version)
