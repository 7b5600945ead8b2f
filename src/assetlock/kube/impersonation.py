"""Acting as oneself and in one further group, by impersonation: an explicit act that RBAC grants."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from assetlock.kube import reviews
from assetlock.kube.api import Api
from assetlock.kube.config import ClusterConfig
from assetlock.kube.errors import Forbidden
from assetlock.kube.http import HttpTransport

EVERYBODY = "system:authenticated"
"""The API server puts those whom one impersonates into this group by itself."""


async def in_group(config: ClusterConfig, group: str) -> tuple[ClusterConfig, reviews.UserInfo]:
    """The configuration of the same caller in this group, and whom the API server takes that for.

    Of the caller's own groups those go along that he may impersonate. Raises `Forbidden`, with what is lacking,
    if he may not impersonate himself, or that group.
    """
    api = Api(HttpTransport(config))
    try:
        me = await reviews.myself(api)
        if group in me.groups:
            return config, me
        # Whoever impersonates somebody already does not become himself again by doing it a second time.
        own = config.headers or await _own(api, me)
    finally:
        await api.close()
    acting = dataclasses.replace(config, headers=(*own, ("Impersonate-Group", group)))
    return acting, await _accepted(acting, me, group)


async def _own(api: Api, me: reviews.UserInfo) -> Sequence[tuple[str, str]]:
    groups = [name for name in me.groups if name != EVERYBODY and await _may_take(api, name)]
    return [("Impersonate-User", me.username), *(("Impersonate-Group", name) for name in groups)]


async def _may_take(api: Api, group: str) -> bool:
    return await reviews.may_i(api, reviews.Action("impersonate", "", "groups", name=group))


async def _accepted(config: ClusterConfig, me: reviews.UserInfo, group: str) -> reviews.UserInfo:
    api = Api(HttpTransport(config))
    try:
        return await reviews.myself(api)
    except Forbidden as error:
        lacking = f"{me.username} needs the verb impersonate on users/{me.username} and on groups/{group}"
        raise Forbidden(error.status, error.reason, f"{error}: {lacking}") from error
    finally:
        await api.close()
