"""One watch for each kind and namespace that targets are in, of metadata only, and what is known by it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator

from assetlock.controller.clock import Clock
from assetlock.controller.targets.claims import Place
from assetlock.controller.targets.objects import Objects, Raw, Selectors, annotations_of, labels_of
from assetlock.core.observation import ObservedTarget
from assetlock.kube.api import Api
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import Resource
from assetlock.model.asset import Target

WATCH_WITHIN = 10.0
"""Seconds that a new watch has for its first list."""

Changed = Callable[[Place, str, Selectors, Raw | None], None]
"""Told of an object that came, went or changed: where, its name, what selects it or did, and how it is known now."""


class Unwatchable(Exception):
    """Objects of a kind can't be watched; says why."""


@dataclasses.dataclass(slots=True)
class Watched:
    """The objects in one place."""

    place: Place
    resource: Resource
    objects: Objects
    reflector: Reflector
    task: asyncio.Task[None]

    def observed(self, target: Target, raw: Raw | None, *, wanted: bool = True) -> ObservedTarget:
        """One of the objects, as a target; ``None`` where there is none of that name."""
        meta = raw["metadata"] if raw else {}
        return ObservedTarget(
            target,
            uid=meta.get("uid"),
            resource_version=meta.get("resourceVersion", ""),
            labels=labels_of(raw) if raw else {},
            annotations=annotations_of(raw) if raw else {},
            wanted=wanted,
            resource=self.resource.full_name,
            namespace=self.place.namespace,
            subresources=self.resource.subresources,
        )


class Watches:
    """Begun when first asked for, and kept until they are stopped."""

    def __init__(self, api: Api, clock: Clock, changed: Changed) -> None:
        self._api = api
        self._clock = clock
        self._changed = changed
        self._watched: dict[Place, Watched] = {}

    def __iter__(self) -> Iterator[Watched]:
        return iter(list(self._watched.values()))

    def get(self, place: Place) -> Watched | None:
        """What is watched in a place, if anything is."""
        return self._watched.get(place)

    async def synced(self, place: Place, resource: Resource) -> Watched:
        """The objects in a place; raises Unwatchable when they can't be listed for so long."""
        watched = self._watched.get(place)
        if watched is not None and watched.resource != resource:
            self.stop(place)
            watched = None
        watched = watched or self._begin(place, resource)
        try:
            await watched.reflector.until_synced(WATCH_WITHIN)
        except TimeoutError:
            where = place.namespace or "the cluster"
            raise Unwatchable(f"{place.kind} objects in {where} can't be watched") from None
        return watched

    def stop(self, place: Place) -> None:
        """Watch this place no longer."""
        self._watched.pop(place).task.cancel()

    async def close(self) -> None:
        """Stop all watches."""
        for watched in self:
            watched.task.cancel()
        await asyncio.gather(*(watched.task for watched in self), return_exceptions=True)

    def _begin(self, place: Place, resource: Resource) -> Watched:
        objects = Objects()

        def on_replace(items: list[Raw], _version: str) -> None:
            before = {name: objects.selecting(name) for name in objects.by_name}
            for name in objects.replace(items):
                selecting = before.get(name, frozenset()) | objects.selecting(name)
                self._changed(place, name, selecting, objects.by_name.get(name))

        def on_event(kind: str, raw: Raw) -> None:
            name = str(raw["metadata"]["name"])
            known, before = objects.by_name.get(name), objects.selecting(name)
            if kind == "DELETED":
                objects.remove(raw)
            else:
                objects.put(raw)
                if known and _is_fenced_alike(known, raw):
                    return
            self._changed(place, name, before | objects.selecting(name), raw)

        reflector = Reflector(
            self._api,
            resource,
            place.namespace,
            metadata_only=True,
            on_replace=on_replace,
            on_event=on_event,
            clock=self._clock.monotonic,
        )
        task = asyncio.create_task(reflector.run(), name=f"watch {place}")
        watched = self._watched[place] = Watched(place, resource, objects, reflector, task)
        return watched


def _is_fenced_alike(before: Raw, after: Raw) -> bool:
    """Whether only the content is another one: no asset has anything to do then, however often a holder writes."""
    same_object = before["metadata"]["uid"] == after["metadata"]["uid"]
    same_labels = labels_of(before) == labels_of(after)
    return same_object and same_labels and annotations_of(before) == annotations_of(after)
