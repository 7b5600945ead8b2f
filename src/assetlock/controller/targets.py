"""The objects that assets stand for: watched as metadata only, one watch for each kind and namespace.

A watch is started when the first asset names such an object, and kept until no asset does and no object carries
a stamp: so objects which an asset no longer names, but which are still fenced by it, are found.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from assetlock.controller.cache import AssetKey
from assetlock.controller.clock import Clock
from assetlock.core import names
from assetlock.core.observation import ObservedTarget
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import ApiError, KindNotFound
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import Resource
from assetlock.model.asset import Asset, Target

PROBLEM_RECHECK = 15.0
"""Seconds after which a target that could not be fenced is tried again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where targets of one kind are: ``namespace`` is ``None`` for cluster-scoped kinds."""

    api_version: str
    kind: str
    namespace: str | None


class _Objects:
    """The metadata of the objects in one place, with those at hand that carry a stamp."""

    def __init__(self) -> None:
        self.by_name: dict[str, dict[str, Any]] = {}
        self.stamped: dict[str, dict[str, Any]] = {}

    def put(self, raw: dict[str, Any]) -> None:
        """Take in a version, unless a later one is known."""
        meta = raw["metadata"]
        known = self.by_name.get(meta["name"])
        if known and int(known["metadata"]["resourceVersion"]) >= int(meta["resourceVersion"]):
            return
        self.by_name[meta["name"]] = raw
        if any(key.endswith(names.STAMP_SUFFIX) for key in meta.get("annotations") or {}):
            self.stamped[meta["name"]] = raw
        else:
            self.stamped.pop(meta["name"], None)

    def drop(self, name: str) -> None:
        """Take in that there is no such object."""
        self.by_name.pop(name, None)
        self.stamped.pop(name, None)

    def replace(self, raws: list[dict[str, Any]]) -> set[str]:
        """Take in a whole list; gives the names of all objects before and after."""
        concerned = set(self.by_name)
        self.by_name.clear()
        self.stamped.clear()
        for raw in raws:
            self.put(raw)
        return concerned | set(self.by_name)


@dataclasses.dataclass(slots=True)
class _Watched:
    resource: Resource
    reflector: Reflector
    task: asyncio.Task[None]
    objects: _Objects


class Targets:
    """Knows every target's metadata, and calls ``changed`` with the assets that a change concerns."""

    def __init__(
        self, api: Api, discovery: Discovery, clock: Clock, changed: Callable[[AssetKey], None]
    ) -> None:
        self._api = api
        self._discovery = discovery
        self._clock = clock
        self._changed = changed
        self._watched: dict[Place, _Watched] = {}
        self._claimants: dict[Place, dict[AssetKey, set[str]]] = {}
        self._problems: dict[tuple[AssetKey, Target], tuple[str, float]] = {}
        self._resources: dict[tuple[str, str], Resource] = {}

    async def observe(self, key: AssetKey, asset: Asset | None) -> tuple[ObservedTarget, ...]:
        """The asset's targets, and strays with its stamp; waits for watches that have only begun.

        Raises ApiError when the API server can't say which kinds there are.
        """
        named = asset.spec.targets if asset else []
        self._keep_problems(key, named)
        wanted = [await self._observe_wanted(key, target) for target in named]
        known = {found.uid for found in wanted if found.uid}
        strays = (stray for stray in self._strays(key) if stray.uid not in known)
        return (
            *wanted,
            *(s for s in strays if not any(_is_named(s.target, by, key.namespace) for by in named)),
        )

    def problem(self, key: AssetKey, target: Target, message: str) -> None:
        """Remember for a while why this target can't be fenced."""
        self._problems[key, target] = (message, self._clock.monotonic() + PROBLEM_RECHECK)

    def recheck_at(self, key: AssetKey) -> float | None:
        """When the first of the asset's problems is worth another try, on the monotonic clock."""
        return min((until for (owner, _), (_, until) in self._problems.items() if owner == key), default=None)

    def resource_of(self, target: Target) -> Resource:
        """The API resource of a target that was observed before."""
        return self._resources[target.api_version, target.kind]

    def place_of(self, target: Target, asset_namespace: str) -> str | None:
        """The namespace a target lives in; ``None`` for cluster-scoped kinds."""
        return (target.namespace or asset_namespace) if self.resource_of(target).namespaced else None

    def put(self, target: Target, namespace: str | None, raw: dict[str, Any] | None) -> None:
        """Take in a live read of a target, or the answer to a write; ``None`` when there is none."""
        watched = self._watched.get(Place(target.api_version, target.kind, namespace))
        if watched is None:
            return
        if raw is None:
            watched.objects.drop(target.name)
        else:
            watched.objects.put(raw)

    def retire(self, assets: Collection[AssetKey]) -> None:
        """Stop the watches that none of the assets that there are needs."""
        for place, watched in list(self._watched.items()):
            claimants = self._claimants.get(place, {})
            for gone in claimants.keys() - set(assets):
                del claimants[gone]
            if not claimants and not watched.objects.stamped:
                watched.task.cancel()
                del self._watched[place]
                self._claimants.pop(place, None)

    async def close(self) -> None:
        """Stop all watches."""
        for watched in self._watched.values():
            watched.task.cancel()
        await asyncio.gather(*(w.task for w in self._watched.values()), return_exceptions=True)

    async def _observe_wanted(self, key: AssetKey, target: Target) -> ObservedTarget:
        problem = self._standing_problem(key, target)
        if problem:
            return ObservedTarget(target, problem=problem)
        try:
            resource = await self._discovery.resource_for(target.api_version, target.kind)
        except KindNotFound as error:
            self.problem(key, target, str(error))
            return ObservedTarget(target, problem=str(error))
        self._resources[target.api_version, target.kind] = resource
        namespace = self.place_of(target, key.namespace)
        place = Place(target.api_version, target.kind, namespace)
        self._claimants.setdefault(place, {}).setdefault(key, set()).add(target.name)
        watched = self._watched.get(place) or self._watch(place, resource)
        try:
            async with asyncio.timeout(10):
                await watched.reflector.synced.wait()
        except TimeoutError:
            message = f"{target.kind} objects in {namespace or 'the cluster'} can't be watched"
            self.problem(key, target, message)
            return ObservedTarget(target, problem=message)
        raw = watched.objects.by_name.get(target.name)
        return _observed(target, raw, resource, namespace) if raw else ObservedTarget(target)

    def _keep_problems(self, key: AssetKey, named: Sequence[Target]) -> None:
        """Forget the problems of targets that the asset no longer names: nobody would ever recheck them."""
        gone = [(owner, target) for owner, target in self._problems if owner == key and target not in named]
        for problem in gone:
            del self._problems[problem]

    def _standing_problem(self, key: AssetKey, target: Target) -> str | None:
        message, until = self._problems.get((key, target), (None, 0.0))
        if message and until <= self._clock.monotonic():
            del self._problems[key, target]
            return None
        return message

    def _strays(self, key: AssetKey) -> Iterator[ObservedTarget]:
        stamp = names.stamp_key(key.name, key.namespace)
        for place, watched in self._watched.items():
            for raw in watched.objects.stamped.values():
                if stamp in raw["metadata"]["annotations"]:
                    name = raw["metadata"]["name"]
                    target = Target(
                        api_version=place.api_version, kind=place.kind, name=name, namespace=place.namespace
                    )
                    found = _observed(target, raw, watched.resource, place.namespace)
                    yield dataclasses.replace(found, wanted=False)

    def _watch(self, place: Place, resource: Resource) -> _Watched:
        objects = _Objects()

        def on_replace(items: list[dict[str, Any]], _version: str) -> None:
            for name in objects.replace(items):
                self._tell(place, name)

        def on_event(kind: str, raw: dict[str, Any]) -> None:
            if kind == "DELETED":
                objects.drop(raw["metadata"]["name"])
            else:
                objects.put(raw)
            self._tell(place, raw["metadata"]["name"])

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
        watched = self._watched[place] = _Watched(resource, reflector, task, objects)
        return watched

    def _tell(self, place: Place, name: str) -> None:
        for key, named in self._claimants.get(place, {}).items():
            if name in named:
                self._changed(key)


def explain(error: ApiError, target: Target) -> str:
    """Why a stamp could not be written, for the one who asked for the lock."""
    return f"{target.kind} {target.name} can't be stamped: {error}"


def _is_named(found: Target, named: Target, asset_namespace: str) -> bool:
    """Whether an asset names this object, be it one that is not looked at for a while because of a problem."""
    same_thing = (found.api_version, found.kind, found.name) == (named.api_version, named.kind, named.name)
    return same_thing and found.namespace in (None, named.namespace or asset_namespace)


def _observed(
    target: Target, raw: dict[str, Any], resource: Resource, namespace: str | None
) -> ObservedTarget:
    meta = raw["metadata"]
    return ObservedTarget(
        target,
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        resource=resource.full_name,
        namespace=namespace,
        subresources=resource.subresources,
    )
