"""The rules of the webhook for new objects: the kinds of the targets that there are, and no other.

All replicas keep them, each to the same, by compare-and-swap. While none does, new kinds are not looked at, and what
is made anew under a locked name is stamped when the controller sees it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, NoReturn

from assetlock.admission.asset_cache import AssetCache
from assetlock.admission.upkeep.tls import CONFIGURATION
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import Conflict, KindNotFound, KubeError, NotFound
from assetlock.kube.resources import LEASES, MUTATING_WEBHOOKS, NAMESPACES, Resource

WEBHOOK = "creations.assetlock.dev"
PERIOD = 60.0
RETRY = 2.0
_NEVER = {(one.group, one.plural) for one in (LEASES, NAMESPACES)}

log = logging.getLogger(__name__)


def rules_for(resources: Iterable[Resource]) -> list[dict[str, Any]]:
    """A rule for each resource, but for Leases, Namespaces and what is our own."""
    wanted = {(r.group, r.plural, r.namespaced) for r in resources if r.group != names.GROUP}
    return [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE"],
            "resources": [plural],
            "scope": "Namespaced" if namespaced else "Cluster",
        }
        for group, plural, namespaced in sorted(wanted)
        if (group, plural) not in _NEVER
    ]


class CreationRules:
    """Writes the rules into the webhook configuration as kinds come and go."""

    def __init__(self, api: Api, view: AssetCache) -> None:
        self._api = api
        self._view = view
        self._discovery = Discovery(api)

    async def run(self) -> NoReturn:
        """Keep them until cancelled."""
        await self._view.reflector.synced.wait()
        while True:
            self._view.kinds_changed.clear()
            pause = PERIOD
            try:
                await self._bring_up_to_date()
            except Conflict:
                pause = 0.0
            except KubeError as error:
                log.warning("the rules for new objects could not be kept: %s", error)
                pause = RETRY
            try:
                async with asyncio.timeout(pause):
                    await self._view.kinds_changed.wait()
            except TimeoutError:
                continue

    async def _bring_up_to_date(self) -> None:
        wanted = rules_for([found for kind in self._view.kinds if (found := await self._resource(*kind))])
        try:
            present = await self._api.get(MUTATING_WEBHOOKS, None, CONFIGURATION)
        except NotFound:
            return
        for webhook in present.get("webhooks") or []:
            if webhook["name"] == WEBHOOK and (webhook.get("rules") or []) != wanted:
                webhook["rules"] = wanted
                await self._api.replace(MUTATING_WEBHOOKS, None, CONFIGURATION, present)

    async def _resource(self, api_version: str, kind: str) -> Resource | None:
        try:
            return await self._discovery.stored_as(api_version, kind)
        except KindNotFound:
            return None
