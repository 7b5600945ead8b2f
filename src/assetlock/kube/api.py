"""The client of the API server: typed, thin, and strict about writes.

What it promises: every write of an existing object carries the resourceVersion it was decided on (a delete
the UID too), and is sent once unless the server surely did not act; a write whose answer was lost is
`OutcomeUnknown`. A list is whole or it fails. Reads are repeated with backoff, a bounded number of times.
It does not promise that a watch survives: it ends, and `reflector` starts it again.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

from assetlock.kube import retry, wire
from assetlock.kube.errors import FieldsDropped, Gone, KubeError
from assetlock.kube.listing import Listing, ObjectList
from assetlock.kube.resources import Object, Resource, group_path
from assetlock.kube.transport import StreamRefused, Transport
from assetlock.kube.watching import WatchEvent, parse_event

__all__ = ["Api", "ObjectList", "WatchEvent"]

#: A watch that is silent for longer than this is taken for dead: bookmarks come about once a minute.
WATCH_IDLE_TIMEOUT: float = 70.0
_LIST_RESTARTS: int = 3


class Api:
    """Reads and writes objects through a transport.

    ``timeout`` is how long a request may take, in seconds. What could only be repeated after more than
    ``longest_pause`` is not: the failure, with the server's ``retry_after``, is the caller's.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
        timeout: float = 15.0,
        longest_pause: float = float("inf"),
        field_manager: str = "assetlock",
    ) -> None:
        self._transport = transport
        self._sleep = sleep
        self._random = random
        self._timeout = timeout
        self._longest_pause = longest_pause
        self._field_manager = field_manager

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()

    async def get(
        self, resource: Resource, namespace: str | None, name: str, *, metadata_only: bool = False
    ) -> Object:
        """The object as it is now; `NotFound` if there is none."""
        accept = wire.PARTIAL if metadata_only else wire.JSON
        return await self._read(resource.path(namespace, name), {}, accept)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        limit: int = 500,
    ) -> ObjectList:
        """All objects, of one version of the collection; starts over if that version is lost on the way."""
        params = {"limit": str(limit), **wire.selectors(label_selector, field_selector)}
        path = resource.path(namespace)
        for restart in range(_LIST_RESTARTS + 1):
            try:
                return await self._all_pages(path, params, Listing(resource, metadata_only))
            except Gone:
                if restart == _LIST_RESTARTS:
                    raise
        raise AssertionError("unreachable")

    async def create(
        self, resource: Resource, namespace: str | None, body: Object, *, dry_run: bool = False
    ) -> Object:
        """Create the object; `AlreadyExists` if its name is taken."""
        return await self._write("POST", resource.path(namespace), body, dry_run=dry_run)

    async def replace(
        self, resource: Resource, namespace: str | None, name: str, body: Object, *, dry_run: bool = False
    ) -> Object:
        """Put the object in the place of the version it names; `Conflict` if that is not the present one."""
        wire.require_version(body)
        if body.get("kind") == "PartialObjectMetadata":
            raise ValueError("an object of which only the metadata is known can't replace the whole one")
        return await self._write("PUT", resource.path(namespace, name), body, dry_run=dry_run)

    async def replace_status(
        self, resource: Resource, namespace: str | None, name: str, body: Object
    ) -> Object:
        """Put the status in the place of that of the version it names; `Conflict` if that is not the present one.

        Raises `FieldsDropped` when not all of it was stored, as the resource's definition does not know it.
        """
        wire.require_version(body)
        stored = await self._write("PUT", resource.path(namespace, name, "status"), body)
        told = {field for field, value in body["status"].items() if value}
        if dropped := told - stored.get("status", {}).keys():
            raise FieldsDropped(resource.kind, name, dropped)
        return stored

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Object,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Change the version that the patch names of the object; `Conflict` if it is not the present one."""
        wire.require_version(patch)
        path = resource.path(namespace, name, subresource)
        return await self._write("PATCH", path, patch, content_type=wire.MERGE_PATCH, dry_run=dry_run)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        resource_version: str,
        dry_run: bool = False,
    ) -> None:
        """Delete this very version of this very object; `Conflict` if it is another one by now."""
        if not uid or not resource_version:
            raise ValueError("a delete needs the uid and the resourceVersion it was decided on")
        body: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        }
        await self._write("DELETE", resource.path(namespace, name), body, dry_run=dry_run)

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        body: Object,
        *,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        """Make the object have these fields (server-side apply), whether it exists or not."""
        name = str(body["metadata"]["name"])
        return await self._write(
            "PATCH",
            resource.path(namespace, name),
            body,
            params={"force": "true" if force else "false"},
            content_type=wire.APPLY_PATCH,
            dry_run=dry_run,
        )

    async def post_review(self, resource: Resource, body: Object, *, namespace: str | None = None) -> Object:
        """Ask the server for a review. Nothing is stored, so it is repeated like a read."""
        return await self._repeated(
            lambda: self._send(
                "POST",
                resource.path(namespace),
                {},
                wire.headers_for(wire.JSON, wire.JSON),
                wire.encoded(body),
            ),
            retry.may_repeat_read,
        )

    async def discover(self, api_version: str) -> dict[str, Resource]:
        """The resources of a group and version, by kind; `NotFound` if the server does not serve it."""
        found = await self._read(group_path(api_version), {}, wire.JSON)
        return wire.resources_in(api_version, found)

    async def versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group that are served, the preferred one first; `NotFound` if it is not served."""
        found = await self._read(group_path(f"{group}/v1").removesuffix("/v1"), {}, wire.JSON)
        preferred = found["preferredVersion"]["groupVersion"]
        others = [str(each["groupVersion"]) for each in found["versions"]]
        return (preferred, *(each for each in others if each != preferred))

    async def served_versions(self) -> tuple[str, ...]:
        """Every group that the server serves, in the version that it prefers: ``v1``, ``apps/v1`` and so on."""
        found = await self._read("/apis", {}, wire.JSON)
        return ("v1", *(group["preferredVersion"]["groupVersion"] for group in found["groups"]))

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        idle_timeout: float = WATCH_IDLE_TIMEOUT,
    ) -> AsyncGenerator[WatchEvent, None]:
        """The changes after a version, bookmarks included, until the server ends the stream.

        Raises `Gone` if the version is too old, `TransportError` if the stream breaks or falls silent.
        """
        params = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(240 + 240 * self._random())),
            **wire.selectors(label_selector, field_selector),
        }
        headers = {"accept": wire.PARTIAL if metadata_only else wire.JSON}
        lines = self._transport.stream(
            resource.path(namespace), params=params, headers=headers, idle_timeout=idle_timeout
        )
        try:
            async for line in lines:
                event = parse_event(line)
                if event is not None:
                    yield event
        except StreamRefused as refused:
            raise wire.error_of(refused.reply) from refused
        finally:
            await _close(lines)

    async def _all_pages(self, path: str, params: Mapping[str, str], listing: Listing) -> ObjectList:
        accept = wire.PARTIAL_LIST if listing.metadata_only else wire.JSON
        token = listing.add(await self._read(path, params, accept))
        while token:
            token = listing.add(await self._read(path, {**params, "continue": token}, accept))
        return listing.whole()

    async def _read(self, path: str, params: Mapping[str, str], accept: str) -> Object:
        return await self._repeated(
            lambda: self._send("GET", path, params, {"accept": accept}, None), retry.may_repeat_read
        )

    async def _write(
        self,
        method: str,
        path: str,
        body: Object,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = wire.JSON,
        dry_run: bool = False,
    ) -> Object:
        query = dict(params or {})
        if method != "DELETE":
            query["fieldManager"] = self._field_manager
        if dry_run:
            query["dryRun"] = "All"
        data, headers = wire.encoded(body), wire.headers_for(wire.JSON, content_type)
        try:
            return await self._repeated(
                lambda: self._send(method, path, query, headers, data), retry.may_repeat_write
            )
        except KubeError as error:
            if not retry.is_outcome_unknown(error):
                raise
            raise wire.outcome_unknown(method, path, error) from error

    async def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Object:
        reply = await self._transport.request(
            method, path, params=params, headers=headers, body=body, timeout=self._timeout
        )
        if not 200 <= reply.status < 300:
            raise wire.error_of(reply)
        return wire.decoded(reply)

    async def _repeated(
        self, attempt: Callable[[], Awaitable[Object]], may_repeat: Callable[[KubeError], bool]
    ) -> Object:
        """The first success, or the failure that may not be repeated, or the last one."""
        pauses = retry.delays(self._random)
        for left in range(retry.TRIES - 1, -1, -1):
            try:
                return await attempt()
            except KubeError as error:
                if not left or not may_repeat(error):
                    raise
                pause = retry.pause_after(error, next(pauses))
                if pause > self._longest_pause:
                    raise
            await self._sleep(pause)
        raise AssertionError("unreachable")


async def _close(lines: AsyncIterator[bytes]) -> None:
    """Close a stream that is left early, if it can be: generators hold their connection until then."""
    aclose = getattr(lines, "aclose", None)
    if aclose is not None:
        await aclose()
