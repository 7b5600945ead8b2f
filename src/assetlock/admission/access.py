"""What a requester may do, asked of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from assetlock.admission.review import Requester
from assetlock.admission.rules.assets import NamedTarget
from assetlock.core import names
from assetlock.kube import reviews
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import KindNotFound, KubeError

PATIENCE = 2.0
"""Seconds that a kind's own server has to say what it serves; the webhook as a whole has five."""


class Unanswered(Exception):
    """The server of a kind does not answer."""

    def __init__(self, why: str, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        super().__init__(f"{why}; see: kubectl get apiservice {version}.{group}; then try again")


class Access:
    """Asks on the requester's behalf. A failure to ask is an exception, never a yes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._discovery = Discovery(api)

    async def may_unlock(self, requester: Requester, namespace: str, asset: str) -> bool:
        """Whether the requester may end others' locks on this asset."""
        return await self._may(requester, reviews.Action("unlock", names.GROUP, "assets", namespace, asset))

    async def not_updatable(self, requester: Requester, targets: Sequence[NamedTarget]) -> list[NamedTarget]:
        """Those of the targets that the requester has no right to update."""
        allowed = await asyncio.gather(*(self._may_update(requester, target) for target in targets))
        return [target for target, may in zip(targets, allowed, strict=True) if not may]

    async def unserved(self, targets: Iterable[NamedTarget]) -> list[str]:
        """Which kinds of the targets the API server does not serve, each with where it serves one of that name."""
        found = []
        for api_version, kind in {(target.api_version, target.kind): None for target in targets}:
            try:
                await self._discovery.resource_for(api_version, kind)
            except KindNotFound as error:
                elsewhere = await self._discovery.versions_with(kind)
                hint = f"; is {' or '.join(elsewhere)} meant?" if elsewhere else ""
                found.append(f"{error}{hint}; the asset can't be locked until it does")
        return found

    async def _may_update(self, requester: Requester, target: NamedTarget) -> bool:
        """Of a kind that is not served (yet), only who may update anything in its group. Raises `Unanswered`."""
        group = target.api_version.rpartition("/")[0]
        try:
            async with asyncio.timeout(PATIENCE):
                resource = await self._discovery.stored_as(target.api_version, target.kind)
        except KindNotFound:
            action = reviews.Action("update", group, "*", target.namespace, target.name)
        except (KubeError, TimeoutError) as error:
            why = str(error) or "its server does not answer"
            raise Unanswered(f"{target} can't be looked up: {why}", target.api_version) from error
        else:
            namespace = target.namespace if resource.namespaced else ""
            action = reviews.Action("update", group, resource.plural, namespace, target.name)
        return await self._may(requester, action)

    async def _may(self, requester: Requester, action: reviews.Action) -> bool:
        user = reviews.UserInfo(requester.username, requester.uid, requester.groups, requester.extra)
        return (await reviews.may(self._api, user, action)).allowed
