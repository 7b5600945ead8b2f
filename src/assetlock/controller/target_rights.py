"""Whether those who set assets' targets may still update them: asked now and then, beside everything else.

A lock never waits for it: what is known is given at once, and who is concerned is told when the answer changes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import zlib
from collections.abc import Callable, Collection
from typing import NoReturn

from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.core.setter import Setter, setter_of
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import KindNotFound, KubeError
from assetlock.kube.resources import Resource
from assetlock.kube.reviews import Action, UserInfo, may
from assetlock.model.asset import Asset, Target

ASKED_EVERY = 600.0
"""Seconds between two times that the same is asked for one asset."""

RETRY = 30.0

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    """May this user update these targets of an asset in this namespace?"""

    setter: Setter
    targets: tuple[Target, ...]
    generation: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class _Answer:
    """The targets that may not be updated, ``None`` while that is not known; and when to ask again."""

    question: _Question
    denied: tuple[Target, ...] | None
    until: float


class TargetRights:
    """`run` it as a task. ``changed`` is called with the assets for which the answer is another one than before."""

    def __init__(
        self, api: Api, discovery: Discovery, clock: Clock, changed: Callable[[AssetKey], None]
    ) -> None:
        self._api = api
        self._discovery = discovery
        self._clock = clock
        self._changed = changed
        self._known: dict[AssetKey, _Answer] = {}
        self._asked: dict[AssetKey, _Question] = {}
        self._woken = asyncio.Event()

    def denied(self, key: AssetKey, asset: Asset | None) -> tuple[Target, ...] | None:
        """The targets that may not be updated by who set them; ``None`` while nobody knows."""
        setter = setter_of(asset.metadata.annotations) if asset else None
        if asset is None or setter is None or not asset.spec.targets:
            self._known.pop(key, None)
            return None
        question = _Question(setter, tuple(asset.spec.targets), asset.metadata.generation)
        known = self._known.get(key)
        if known is None and _was_answered(asset):
            known = self._known[key] = _Answer(question, None, self._some_time_later(key))
        if known is None or known.question != question or known.until <= self._clock.monotonic():
            self._asked[key] = question
            self._woken.set()
        return known.denied if known is not None and known.question == question else None

    def recheck_at(self, key: AssetKey) -> float | None:
        """When to ask again for the asset, on the monotonic clock; ``None`` while that is under way."""
        known = self._known.get(key)
        return known.until if known is not None and key not in self._asked else None

    def retire(self, assets: Collection[AssetKey]) -> None:
        """Forget the assets that are no more."""
        for gone in self._known.keys() - set(assets):
            del self._known[gone]

    async def run(self) -> NoReturn:
        """Ask what is to be asked, one after another, until cancelled."""
        while True:
            await self._woken.wait()
            while self._asked:
                key, question = next(iter(self._asked.items()))
                before = self._known.get(key)
                answer = await self._answer(key, question)
                if self._asked.get(key) == question:
                    del self._asked[key]
                self._known[key] = answer
                if before is None or (before.question, before.denied) != (question, answer.denied):
                    self._changed(key)
            self._woken.clear()

    async def _answer(self, key: AssetKey, question: _Question) -> _Answer:
        now = self._clock.monotonic()
        try:
            denied = tuple([t for t in question.targets if not await self._may(key, question.setter, t)])
        except KubeError as error:
            log.warning("could not ask for rights", extra={"asset": str(key), "why": str(error)})
            return _Answer(question, None, now + RETRY)
        return _Answer(question, denied, now + ASKED_EVERY)

    async def _may(self, key: AssetKey, setter: Setter, target: Target) -> bool:
        """Of a kind that is not served now there is nothing to update."""
        try:
            resource = await self._discovery.stored_as(target.api_version, target.kind)
        except KindNotFound:
            return True
        user = UserInfo(setter.username, groups=setter.groups)
        return (await may(self._api, user, _updating(resource, target, key.namespace))).allowed

    def _some_time_later(self, key: AssetKey) -> float:
        """A start is no reason to ask for all assets at once."""
        return self._clock.monotonic() + zlib.crc32(str(key).encode()) % ASKED_EVERY


def _updating(resource: Resource, target: Target, namespace: str) -> Action:
    """Updating the object that a target names, or every one that it may select."""
    where = (target.namespace or namespace) if resource.namespaced else ""
    return Action("update", resource.group, resource.plural, where, target.name or "")


def _was_answered(asset: Asset) -> bool:
    """Whether the asset's status already says what came of it as it is now."""
    generation = asset.metadata.generation
    return any(
        c.type == "TargetsPermitted" and c.status != "Unknown" and c.observed_generation == generation
        for c in asset.status.conditions
    )
