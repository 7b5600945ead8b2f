"""The policies that fence targets and their bindings: whether they are there, and since when as they are.

Their existence is watched; that they do what they must is tried elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from assetlock.controller.clock import Clock
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import POLICIES, POLICY_BINDINGS, Resource

SYNCED_WITHIN = 10.0

_WITHOUT = {
    names.TARGETS_POLICY: "nothing is fenced",
    names.SUBRESOURCES_POLICY: "scaling, eviction and exec are open to everybody",
}


class FencePolicies:
    """Calls ``changed`` when a policy or its binding comes, changes or goes."""

    def __init__(self, api: Api, clock: Clock, changed: Callable[[], None]) -> None:
        self.since = clock.monotonic()
        self._clock = clock
        self._changed = changed
        self._versions: dict[tuple[str, str], str | None] = {}
        kinds = (POLICIES, POLICY_BINDINGS)
        self._reflectors = [self._reflector(api, kind, name) for name in _WITHOUT for kind in kinds]
        self._watching: list[asyncio.Task[None]] = []

    async def missing(self, *, subresources: bool) -> str | None:
        """What is missing of it, ready to be read; ``None`` when all of it is there. Waits for the first look.

        ``subresources``: whether those matter too.
        """
        if not self._watching:
            self._watching = [asyncio.create_task(each.run()) for each in self._reflectors]
        try:
            for each in self._reflectors:
                await each.until_synced(SYNCED_WITHIN)
        except TimeoutError:
            return "the policies in the API server can't be watched"
        for (kind, name), version in self._versions.items():
            if version is None and (subresources or name != names.SUBRESOURCES_POLICY):
                return f"the {kind} {name} is missing, without which {_WITHOUT[name]}: install it again"
        return None

    async def close(self) -> None:
        """Stop the watches."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    def _reflector(self, api: Api, resource: Resource, name: str) -> Reflector:
        def on_replace(items: list[dict[str, Any]], _version: str) -> None:
            self._take_in((resource.kind, name), items[0] if items else None)

        def on_event(kind: str, raw: dict[str, Any]) -> None:
            self._take_in((resource.kind, name), None if kind == "DELETED" else raw)

        return Reflector(
            api,
            resource,
            field_selector=f"metadata.name={name}",
            metadata_only=True,
            on_replace=on_replace,
            on_event=on_event,
            clock=self._clock.monotonic,
        )

    def _take_in(self, which: tuple[str, str], raw: dict[str, Any] | None) -> None:
        # Not the resourceVersion: what is noted on a policy, by us too, is no change of what it does.
        version = f"{raw['metadata']['uid']} {raw['metadata'].get('generation')}" if raw else None
        if which in self._versions and self._versions[which] == version:
            return
        self._versions[which] = version
        self.since = self._clock.monotonic()
        self._changed()
