"""The pods that hold locks or are next in line: each is watched by itself, so that all others cost nothing.

With a pod its Job is watched and, while the pod does not look well, its node. What a watch shows is a reason to look
closer: before anything follows from it, `Pods.read` asks the API server.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from assetlock.controller.clock import Clock
from assetlock.controller.keys import Concerned
from assetlock.controller.targets.objects import version_of
from assetlock.core.pods import Fate, PodRef, Sight, fate_of, job_of, node_in_question
from assetlock.kube.api import Api
from assetlock.kube.errors import Forbidden, NotFound
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import JOBS, NODES, PODS, Object, Resource
from assetlock.model.workload import Job, Node, Pod


class _Place(NamedTuple):
    """Where one object is; ``namespace`` is ``None`` for cluster-scoped kinds."""

    resource: Resource
    namespace: str | None
    name: str


@dataclasses.dataclass(slots=True)
class _Seen:
    """What was last seen in a place. ``raw`` is ``None`` for nothing, and as long as it is not ``known``."""

    known: bool = False
    raw: Object | None = None

    def put(self, raw: Object | None) -> None:
        """Take in a version, unless a later one is known; ``None`` when there is no such object."""
        if raw is None or self.raw is None or version_of(raw) >= version_of(self.raw):
            self.known, self.raw = True, raw

    def remove(self, raw: Object) -> None:
        """Take in that this version was the object's last, unless there is another one of its name since."""
        if self.raw is None or version_of(raw) >= version_of(self.raw):
            self.put(None)


@dataclasses.dataclass(slots=True)
class _Watched:
    task: asyncio.Task[None]
    seen: _Seen
    claimants: set[Concerned] = dataclasses.field(default_factory=set)


class Pods:
    """Knows what became of the pods behind locks, and calls ``changed`` with whom a change concerns."""

    def __init__(self, api: Api, clock: Clock, changed: Callable[[Concerned], None]) -> None:
        self._api = api
        self._clock = clock
        self._changed = changed
        self._watched: dict[_Place, _Watched] = {}
        self._claims: defaultdict[Concerned, set[_Place]] = defaultdict(set)

    def observe(self, key: Concerned, pods: Iterable[PodRef]) -> dict[str, Fate]:
        """What is known by now of these pods, by UID. They are watched from now on, former ones no longer."""
        fates, needed = {}, set()
        for ref in pods:
            where = _place_of(ref)
            needed.add(where)
            seen = self._claim(key, where)
            beside = {place: self._claim(key, place) for place in _beside(ref, seen)}
            needed.update(beside)
            if seen.known:
                fates[ref.uid] = fate_of(ref, _sight(seen, beside))
        for place in self._claims[key] - needed:
            self._release(key, place)
        if not needed:
            del self._claims[key]
        return fates

    async def read(self, ref: PodRef) -> Fate:
        """What the API server says of the pod now. Of one that we may not read, nothing is known."""
        seen = await self._look(_place_of(ref))
        beside = {place: await self._look(place) for place in _beside(ref, seen)}
        return fate_of(ref, _sight(seen, beside)) if seen.known else Fate()

    async def close(self) -> None:
        """Stop all watches."""
        for watched in self._watched.values():
            watched.task.cancel()
        await asyncio.gather(*(watched.task for watched in self._watched.values()), return_exceptions=True)

    def _claim(self, key: Concerned, place: _Place) -> _Seen:
        watched = self._watched.get(place) or self._watch(place)
        watched.claimants.add(key)
        self._claims[key].add(place)
        return watched.seen

    def _release(self, key: Concerned, place: _Place) -> None:
        self._claims[key].discard(place)
        watched = self._watched[place]
        watched.claimants.discard(key)
        if not watched.claimants:
            watched.task.cancel()
            del self._watched[place]

    def _watch(self, place: _Place) -> _Watched:
        seen = _Seen()

        def on_replace(items: list[Object], _version: str) -> None:
            seen.put(items[0] if items else None)
            self._tell(place)

        def on_event(kind: str, raw: Object) -> None:
            (seen.remove if kind == "DELETED" else seen.put)(raw)
            self._tell(place)

        reflector = Reflector(
            self._api,
            place.resource,
            place.namespace,
            field_selector=f"metadata.name={place.name}",
            on_replace=on_replace,
            on_event=on_event,
            clock=self._clock.monotonic,
        )
        task = asyncio.create_task(reflector.run(), name=f"watch {place.resource.kind} {place.name}")
        watched = self._watched[place] = _Watched(task, seen)
        return watched

    def _tell(self, place: _Place) -> None:
        watched = self._watched.get(place)
        for key in watched.claimants if watched else ():
            self._changed(key)

    async def _look(self, place: _Place) -> _Seen:
        """Read what is there; what is watched learns of it, so that the next decision is made from it."""
        watched = self._watched.get(place)
        seen = watched.seen if watched else _Seen()
        try:
            seen.put(await self._api.get(place.resource, place.namespace, place.name))
        except NotFound:
            seen.put(None)
        except Forbidden:
            seen.known, seen.raw = False, None
        return seen


def _place_of(ref: PodRef) -> _Place:
    return _Place(PODS, ref.namespace, ref.name)


def _beside(ref: PodRef, seen: _Seen) -> Iterator[_Place]:
    """What else has to be looked at to know how the pod is."""
    if seen.raw is None or seen.raw["metadata"]["uid"] != ref.uid:
        return
    pod = Pod.model_validate(seen.raw)
    job, node = job_of(pod), node_in_question(pod)
    if job is not None:
        yield _Place(JOBS, ref.namespace, job[0])
    if node is not None:
        yield _Place(NODES, None, node)


def _sight(pod: _Seen, beside: dict[_Place, _Seen]) -> Sight:
    seen = {place.resource: found for place, found in beside.items() if found.known}
    job, node = seen.get(JOBS, _Seen()).raw, seen.get(NODES, _Seen()).raw
    return Sight(
        Pod.model_validate(pod.raw) if pod.raw else None,
        Job.model_validate(job) if job else None,
        Node.model_validate(node) if node else None,
        job_seen=JOBS in seen,
        node_seen=NODES in seen,
    )
