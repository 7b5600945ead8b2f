"""The namespaces that assets live in and have targets in: watched as metadata only, guarded, and set free again.

Many assets share a namespace, and each write to it makes the others' decisions stale. So writes to one take turns
here, and one that was decided on an older version than is known by now is not even sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.controller.targets.objects import version_of
from assetlock.core import names
from assetlock.core.fence import namespace_fence
from assetlock.core.observation import ObservedNamespace
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, KubeError, NotFound
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import NAMESPACES
from assetlock.model.asset import Asset

PROBLEM_RECHECK = 15.0
"""Seconds after which a namespace that could not be guarded is tried again."""

SYNCED_WITHIN = 10.0

log = logging.getLogger(__name__)


class Namespaces:
    """Knows every namespace's metadata, and calls ``changed`` with the assets that a change concerns."""

    def __init__(self, api: Api, clock: Clock, changed: Callable[[AssetKey], None]) -> None:
        self._api = api
        self._clock = clock
        self._changed = changed
        self._known: dict[str, dict[str, Any]] = {}
        self._guarded: dict[AssetKey, set[str]] = defaultdict(set)
        self._claimants: dict[str, set[AssetKey]] = defaultdict(set)
        self._problems: dict[str, tuple[str, float]] = {}
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._watching: asyncio.Task[None] | None = None
        self._reflector = Reflector(
            api,
            NAMESPACES,
            metadata_only=True,
            on_replace=self._replace,
            on_event=self._change,
            clock=clock.monotonic,
        )

    async def observe(self, key: AssetKey, asset: Asset | None) -> tuple[ObservedNamespace, ...]:
        """Where the asset is, where its targets are, and where its guard is left; waits for the first list."""
        self._watch()
        wanted = needed_by(asset) if asset else set()
        for name in wanted:
            self._claimants[name].add(key)
        if not all(map(self._standing_problem, wanted)):
            await self._first_list(wanted)
        seen = [await self._observe(name) for name in sorted(wanted | self._guarded.get(key, set()))]
        return tuple(space for space in seen if space is not None)

    def problem(self, name: str, message: str) -> None:
        """Remember for a while why this namespace can't be guarded."""
        self._problems[name] = (message, self._clock.monotonic() + PROBLEM_RECHECK)

    def recheck_at(self, key: AssetKey) -> float | None:
        """When the first of the problems that concern the asset is worth another try, on the monotonic clock."""
        problems = self._problems.items()
        concerning = (until for name, (_, until) in problems if key in self._claimants.get(name, ()))
        return min(concerning, default=None)

    async def patch(self, observed: ObservedNamespace, patch: dict[str, Any]) -> dict[str, Any]:
        """Change the namespace as it was observed; `Conflict` if it has changed since, without asking if known."""
        async with self._turns[observed.name]:
            known = self._known.get(observed.name)
            if known is not None and known["metadata"]["resourceVersion"] != observed.resource_version:
                raise Conflict(409, "Conflict", f"namespace {observed.name} has changed since")
            new = await self._api.merge_patch(NAMESPACES, None, observed.name, patch)
            self._put(new)
            return new

    async def read_again(self, observed: ObservedNamespace) -> None:
        """Look what became of a namespace after a write to it went wrong, unless it is known already."""
        known = self._known.get(observed.name)
        if known is None or known["metadata"]["resourceVersion"] == observed.resource_version:
            await self._read(observed.name)

    async def free(self, needed: Collection[str]) -> None:
        """Take the label off the namespaces that no asset needs to be guarded, and that nothing guards any more.

        What fails, or is not known yet, is left for the next time.
        """
        self._watch()
        for name, raw in list(self._known.items()):
            space = _observed(raw)
            if name in needed or not namespace_fence.is_left_over(space):
                continue
            metadata = {
                "uid": space.uid,
                "resourceVersion": space.resource_version,
                "labels": {names.GUARDED_LABEL: None},
            }
            try:
                await self.patch(space, {"metadata": metadata})
            except KubeError as error:
                log.warning("could not unlabel", extra={"namespace": name, "why": str(error)})

    def retire(self, assets: Collection[AssetKey]) -> None:
        """Forget the claims of assets that are no more."""
        for claimants in self._claimants.values():
            claimants.intersection_update(assets)

    async def close(self) -> None:
        """Stop the watch."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def _watch(self) -> None:
        if self._watching is None:
            self._watching = asyncio.create_task(self._reflector.run(), name="watch namespaces")

    async def _first_list(self, wanted: Collection[str]) -> None:
        try:
            await self._reflector.until_synced(SYNCED_WITHIN)
        except TimeoutError:
            for name in wanted:
                self.problem(name, "namespaces can't be watched")

    def _standing_problem(self, name: str) -> str | None:
        message, until = self._problems.get(name, (None, 0.0))
        if message and until <= self._clock.monotonic():
            del self._problems[name]
            return None
        return message

    async def _observe(self, name: str) -> ObservedNamespace | None:
        if problem := self._standing_problem(name):
            return ObservedNamespace(name, problem=problem)
        if name not in self._known:
            await self._read(name)
        return _observed(self._known[name]) if name in self._known else None

    async def _read(self, name: str) -> None:
        try:
            self._put(await self._api.get(NAMESPACES, None, name, metadata_only=True))
        except NotFound:
            self._drop(name)

    def _replace(self, items: list[dict[str, Any]], _version: str) -> None:
        before, self._known = self._known, {}
        for gone in before.keys() - {raw["metadata"]["name"] for raw in items}:
            self._drop(gone)
        for raw in items:
            self._known[raw["metadata"]["name"]] = raw
            self._tell(before.get(raw["metadata"]["name"]), raw)

    def _change(self, kind: str, raw: dict[str, Any]) -> None:
        if kind == "DELETED":
            self._drop(raw["metadata"]["name"])
        else:
            self._put(raw)

    def _drop(self, name: str) -> None:
        self._known.pop(name, None)
        self._turns.pop(name, None)
        for guarded in self._guarded.values():
            guarded.discard(name)

    def _put(self, raw: dict[str, Any]) -> None:
        """Take in a version, unless a later one is known."""
        name = raw["metadata"]["name"]
        before = self._known.get(name)
        if before and version_of(before) >= version_of(raw):
            return
        self._known[name] = raw
        self._tell(before, raw)

    def _tell(self, before: dict[str, Any] | None, raw: dict[str, Any]) -> None:
        """Wake the assets that the change is about: not all of a namespace for the guard of one."""
        new = _observed(raw)
        old = _observed(before) if before else ObservedNamespace(new.name)
        guards, guards_before = _guards_on(new), _guards_on(old)
        for key in guards_before:
            self._guarded[key].discard(new.name)
        for key in guards:
            self._guarded[key].add(new.name)
        changed = {key for key, _ in guards.items() ^ guards_before.items()}
        if old.labels.get(names.GUARDED_LABEL) != new.labels.get(names.GUARDED_LABEL):
            changed |= self._claimants[new.name]
        for key in changed:
            self._changed(key)


def needed_by(asset: Asset) -> set[str]:
    """The namespaces to guard for an asset: its own, and those of its targets."""
    own = asset.metadata.namespace or ""
    return {own, *(target.namespace or own for target in asset.spec.targets)} - {
        namespace_fence.NEVER_GUARDED
    }


def _guards_on(space: ObservedNamespace) -> dict[AssetKey, str]:
    return {
        AssetKey(*claimant): value
        for key, value in space.annotations.items()
        if key.endswith(names.NAMESPACE_FENCE_SUFFIX) and (claimant := names.claimant(key)) is not None
    }


def _observed(raw: dict[str, Any]) -> ObservedNamespace:
    meta = raw["metadata"]
    return ObservedNamespace(
        meta["name"],
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
    )
