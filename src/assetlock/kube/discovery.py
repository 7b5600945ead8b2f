"""From `apiVersion` and `kind`, as people write them, to the resource that the API server serves now.

What was found is remembered for some minutes, what was not for some seconds: a CRD that is installed now is
found soon. While a group's own server (an aggregated API) does not answer, what was known of it still
counts; if nothing was, the failure is passed on: not to know is not the same as not to exist.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assetlock.kube.api import Api
from assetlock.kube.errors import Forbidden, KindNotFound, KubeError, NotFound
from assetlock.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource, group_of

_STORAGE_TTL = 5.0
"""Seconds for which the version that custom resources are stored in is believed."""


@dataclass(frozen=True, slots=True)
class _Known:
    kinds: Mapping[str, Resource]
    since: float


@dataclass(frozen=True, slots=True)
class _Stored:
    resource: Resource
    until: float


class Discovery:
    """Looks kinds up, with a memory."""

    def __init__(
        self,
        api: Api,
        *,
        ttl: float = 300.0,
        missing_ttl: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._ttl = ttl
        self._missing_ttl = missing_ttl
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._stored: dict[tuple[str, str], _Stored] = {}

    async def resource_for(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind; `KindNotFound`, with a message for people, if the server has none."""
        known = self._known.get(api_version)
        if known is None or self._is_stale(known, kind):
            known = await self._look(api_version, known)
        if kind in known.kinds:
            return known.kinds[kind]
        if not known.kinds:
            raise KindNotFound(f"the API server does not serve {api_version!r} (asked for the kind {kind})")
        raise KindNotFound(
            f"the API server has no kind {kind!r} in {api_version!r}{_near(kind, known.kinds)}"
        )

    async def stored_as(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind in the version that its objects are stored in, or else one that is served.

        Whatever version is named: a write through another would drop the fields that this one does not know.
        """
        key = group_of(api_version), kind
        known = self._stored.get(key)
        if known is None or self._clock() >= known.until:
            resource = await self._served(api_version, kind)
            stored = await self._storage_version(resource)
            found = await self._served(f"{resource.group}/{stored}", kind) if stored else resource
            until = self._clock() + (_STORAGE_TTL if stored else self._ttl)
            self._stored[key] = known = _Stored(found, until)
        return known.resource

    async def _served(self, api_version: str, kind: str) -> Resource:
        """The kind in this version, or in the one that the server prefers."""
        try:
            return await self.resource_for(api_version, kind)
        except KindNotFound:
            for other in await self._versions(group_of(api_version)):
                with contextlib.suppress(KindNotFound):
                    return await self.resource_for(other, kind)
            raise

    async def _versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group that are served, the preferred one first."""
        if not group:
            return ()
        try:
            return await self._api.versions(group)
        except (NotFound, ValueError):
            return ()

    async def _storage_version(self, resource: Resource) -> str | None:
        """The version that a custom resource is stored in; ``None`` for others, which lose nothing by conversion."""
        if "." not in resource.group:
            return None
        try:
            found = await self._api.get(
                CUSTOM_RESOURCE_DEFINITIONS, None, f"{resource.plural}.{resource.group}"
            )
        except (NotFound, Forbidden):
            return None
        versions = found["spec"]["versions"]
        return next((str(each["name"]) for each in versions if each["storage"]), None)

    def forget_kind(self, api_version: str, kind: str) -> None:
        """Look again next time in which version a kind is served."""
        self._stored.pop((group_of(api_version), kind), None)
        for known in [each for each in self._known if group_of(each) == group_of(api_version)]:
            self.forget(known)

    async def versions_with(self, kind: str) -> list[str]:
        """The groups that serve a kind of this name, each in its preferred version; those that answer."""
        found = []
        for api_version in await self._api.served_versions():
            with contextlib.suppress(KubeError):
                await self.resource_for(api_version, kind)
                found.append(api_version)
        return found

    def forget(self, api_version: str) -> None:
        """Look again next time: what was remembered turned out wrong."""
        self._known.pop(api_version, None)

    def _is_stale(self, known: _Known, kind: str) -> bool:
        ttl = self._ttl if kind in known.kinds else self._missing_ttl
        return self._clock() - known.since >= ttl

    async def _look(self, api_version: str, before: _Known | None) -> _Known:
        kinds: Mapping[str, Resource]
        try:
            kinds = await self._api.discover(api_version)
        except NotFound:
            kinds = {}
        except ValueError as error:
            raise KindNotFound(f"{api_version!r} is not an apiVersion: {error}") from error
        except KubeError:
            if before is None or not before.kinds:
                raise
            kinds = before.kinds
        self._known[api_version] = known = _Known(kinds, self._clock())
        return known


def _near(kind: str, kinds: Mapping[str, Resource]) -> str:
    """A hint for who wrote the plural, or the right letters in the wrong case."""
    wanted = kind.lower()
    for name, resource in kinds.items():
        if wanted in (name.lower(), resource.plural):
            return f"; is {name!r} meant?"
    return ""
