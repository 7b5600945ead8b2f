"""Every object in a cluster that carries a stamp or a guard of ours, whatever its kind; and taking those off."""

from __future__ import annotations

from dataclasses import dataclass

from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import ApiError, Forbidden, NotFound
from assetlock.kube.resources import NAMESPACES, Object, Resource

_METHOD_NOT_ALLOWED = 405
_LABELS = (names.FENCED_LABEL, names.GUARDED_LABEL)
_SUFFIXES = (names.STAMP_SUFFIX, names.NAMESPACE_FENCE_SUFFIX)


@dataclass(frozen=True, slots=True)
class Marked:
    """An object, and what of ours is on it."""

    resource: Resource
    namespace: str | None
    name: str
    version: str
    labels: frozenset[str]
    annotations: frozenset[str]

    @property
    def is_closed(self) -> bool:
        """Whether a lock is recorded on it; a namespace with assets in it carries the label alone."""
        return bool(self.annotations)

    @property
    def title(self) -> str:
        """As people call it."""
        return f"{self.resource.kind} {self.name}" + (
            f" in namespace {self.namespace}" if self.namespace else ""
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The objects, and the kinds that the caller has no right to list."""

    objects: tuple[Marked, ...]
    unseen: tuple[str, ...]


async def find(api: Api) -> Found:
    """Look through every kind that is served."""
    objects, unseen = await _labelled(api, NAMESPACES, names.GUARDED_LABEL), []
    for api_version in await api.served_versions():
        try:
            resources = await api.discover(api_version)
        except ApiError:
            # The server of an aggregated API that does not answer: nobody can write there either.
            continue
        for resource in resources.values():
            try:
                objects += await _labelled(api, resource, names.FENCED_LABEL)
            except Forbidden:
                unseen.append(resource.full_name)
    return Found(tuple(objects), tuple(unseen))


async def unmark(api: Api, one: Marked) -> None:
    """Take off what is ours. Raises KubeError: `Conflict` if the object has changed since."""
    metadata = {
        "resourceVersion": one.version,
        "labels": dict.fromkeys(one.labels),
        "annotations": dict.fromkeys(one.annotations),
    }
    await api.merge_patch(one.resource, one.namespace, one.name, {"metadata": metadata})


async def _labelled(api: Api, resource: Resource, label: str) -> list[Marked]:
    """None of a kind that can't be listed: nothing is stored of it."""
    try:
        listed = await api.list(resource, label_selector=label, metadata_only=True)
    except NotFound:
        return []
    except ApiError as error:
        if error.status == _METHOD_NOT_ALLOWED:
            return []
        raise
    return [_marked(resource, one) for one in listed.items]


def _marked(resource: Resource, one: Object) -> Marked:
    metadata = one["metadata"]
    return Marked(
        resource,
        metadata.get("namespace"),
        metadata["name"],
        metadata["resourceVersion"],
        frozenset(label for label in metadata.get("labels") or {} if label in _LABELS),
        frozenset(key for key in metadata.get("annotations") or {} if key.endswith(_SUFFIXES)),
    )
