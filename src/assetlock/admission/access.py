"""What a requester may do, asked of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from assetlock.admission.review import Requester
from assetlock.admission.rules.assets import NamedTarget
from assetlock.core import names
from assetlock.kube import reviews
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import KindNotFound


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

    async def _may_update(self, requester: Requester, target: NamedTarget) -> bool:
        """Of a kind that is not served (yet), only who may update anything in its group."""
        group = target.api_version.rpartition("/")[0]
        try:
            resource = await self._discovery.stored_as(target.api_version, target.kind)
        except KindNotFound:
            action = reviews.Action("update", group, "*", target.namespace, target.name)
        else:
            namespace = target.namespace if resource.namespaced else ""
            action = reviews.Action("update", group, resource.plural, namespace, target.name)
        return await self._may(requester, action)

    async def _may(self, requester: Requester, action: reviews.Action) -> bool:
        user = reviews.UserInfo(requester.username, requester.uid, requester.groups, requester.extra)
        return (await reviews.may(self._api, user, action)).allowed
