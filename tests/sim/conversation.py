"""The same conversation with any API server, written down so that two servers' answers can be compared.

A conversation is a list of operations on three kinds of objects of a few names. Whatever a server is free to choose
(uids, resourceVersions, times, generated names) is replaced by the order in which it was first seen.
"""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from assetlock.kube.resources import CONFIG_MAPS, LEASES, Resource
from assetlock.kube.transport import Reply, Transport

THINGS = Resource("sim.assetlock.dev", "v1", "things", "Thing")
KINDS = (CONFIG_MAPS, LEASES, THINGS)
FINALIZER = "sim.assetlock.dev/hold"
_NEVER_OURS = "kube-root-ca.crt"
_TIMES = ("creationTimestamp", "deletionTimestamp")
_AS_PARTIAL = {
    "": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "list": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One request, in the words of neither server. What an operation has no use for, it ignores."""

    verb: str
    kind: int = 0
    name: str = "a"
    value: int = 0
    color: str = ""
    finalizer: bool = False
    version: str = "good"  # good, stale or none
    uid: str = "none"  # good, wrong or none
    subresource: str = ""
    selector: str = ""
    field: str = ""
    limit: int = 0
    partial: bool = False

    @property
    def resource(self) -> Resource:
        """The resource it is about."""
        return KINDS[self.kind]


def content(resource: Resource, value: int) -> dict[str, Any]:
    """Some content for an object."""
    if resource is CONFIG_MAPS:
        return {"data": {"value": str(value)}}
    if resource is LEASES:
        return {"spec": {"holderIdentity": f"holder-{value}", "leaseDurationSeconds": 30 + value}}
    return {"spec": {"shade": f"shade-{value}", "size": value}, "status": {"phase": f"phase-{value}"}}


@dataclass
class Anonymous:
    """Replaces what a server chose by when it was first seen."""

    seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def _rank(self, what: str, value: str) -> str:
        ranks = self.seen.setdefault(what, {})
        return f"{what} {ranks.setdefault(value, len(ranks))}"

    def of(self, value: Any, key: str = "") -> Any:
        """A JSON value without anything that differs between two servers that behave alike."""
        if isinstance(value, dict):
            return {name: self.of(item, name) for name, item in value.items() if name != "managedFields"}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if key in ("uid", "resourceVersion"):
            return self._rank(key, value)
        if key in _TIMES and value is not None:
            return "some time"
        if key == "continue" and value:
            return "more"
        if key == "name" and isinstance(value, str):
            return re.sub(r"^generated-[a-z0-9]{5}$", "generated-*", value)
        return value


@dataclass
class Conversation:
    """One side of the comparison: talks, and writes down what it was told."""

    transport: Transport
    namespace: str
    anonymous: Anonymous = field(default_factory=Anonymous)
    first_versions: dict[tuple[str, str], str] = field(default_factory=dict)

    async def play(self, operations: list[Operation]) -> list[Any]:
        """Make all requests in order; what each was answered."""
        return [await self._one(operation) for operation in operations]

    async def _one(self, operation: Operation) -> Any:
        return await getattr(self, f"_{operation.verb}")(operation)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Reply:
        """One request."""
        return await self.transport.request(
            method,
            path,
            params=params or {},
            headers={"content-type": content_type, "accept": accept},
            body=None if body is None else json.dumps(body).encode(),
            timeout=30,
        )

    def _noted(self, reply: Reply) -> Any:
        """What the comparison looks at: of a failure the code, the reason and what it is about."""
        body = json.loads(reply.body)
        if body.get("kind") == "Status" and body.get("status") == "Failure":
            details = {key: value for key, value in (body.get("details") or {}).items() if key != "causes"}
            return [reply.status, body.get("reason"), details]
        if body.get("items"):
            ours = [item for item in body["items"] if item["metadata"]["name"] != _NEVER_OURS]
            body["items"] = ours or (None if body["kind"] == "PartialObjectMetadataList" else [])
            if body["metadata"].pop("remainingItemCount", None) is not None:
                body["metadata"]["remainingItemCount"] = "some"
        if body.get("kind", "").endswith("List"):
            # A list's own version moves with everything else that happens in a real cluster.
            body["metadata"].pop("resourceVersion", None)
        return [reply.status, self.anonymous.of(body)]

    def _path(self, operation: Operation, *, collection: bool = False) -> str:
        if collection:
            return operation.resource.path(self.namespace)
        return operation.resource.path(self.namespace, operation.name, operation.subresource or None)

    def _object(self, operation: Operation) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": operation.name}
        if operation.color:
            metadata["labels"] = {"color": operation.color}
        if operation.finalizer:
            metadata["finalizers"] = [FINALIZER]
        resource = operation.resource
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return {**kind, "metadata": metadata, **content(resource, operation.value)}

    async def _current(self, operation: Operation) -> dict[str, Any]:
        path = operation.resource.path(self.namespace, operation.name)
        reply = await self.send("GET", path)
        metadata: dict[str, Any] = json.loads(reply.body)["metadata"] if reply.status == 200 else {}
        if metadata:
            where = (operation.resource.plural, operation.name)
            self.first_versions.setdefault(where, metadata["resourceVersion"])
        return metadata

    async def _preconditions(self, operation: Operation) -> dict[str, str]:
        """The resourceVersion and uid that an operation wants to name."""
        current = await self._current(operation)
        wanted: dict[str, str] = {}
        if operation.version == "good":
            wanted["resourceVersion"] = current.get("resourceVersion", "7")
        elif operation.version == "stale":
            where = (operation.resource.plural, operation.name)
            first = self.first_versions.get(where, "3")
            wanted["resourceVersion"] = "2" if first == current.get("resourceVersion") else first
        if operation.uid == "good":
            wanted["uid"] = current.get("uid", "b7e0c9d5-0000-4000-8000-000000000000")
        elif operation.uid == "wrong":
            wanted["uid"] = "00000000-0000-4000-8000-000000000001"
        return wanted

    async def _create(self, operation: Operation) -> Any:
        return self._noted(
            await self.send("POST", self._path(operation, collection=True), self._object(operation))
        )

    async def _generate(self, operation: Operation) -> Any:
        obj = self._object(operation)
        del obj["metadata"]["name"]
        obj["metadata"]["generateName"] = "generated-"
        obj["metadata"].pop("finalizers", None)
        path = self._path(operation, collection=True)
        reply = await self.send("POST", path, obj)
        name = json.loads(reply.body)["metadata"]["name"]
        return [self._noted(reply), self._noted(await self.send("DELETE", f"{path}/{name}"))]

    async def _get(self, operation: Operation) -> Any:
        accept = _AS_PARTIAL[""] if operation.partial else "application/json"
        return self._noted(await self.send("GET", self._path(operation), accept=accept))

    async def _list(self, operation: Operation) -> Any:
        params = {"labelSelector": operation.selector, "fieldSelector": operation.field}
        params = {key: value for key, value in params.items() if value}
        if operation.limit and operation.resource is not CONFIG_MAPS:
            params["limit"] = str(operation.limit)
        accept = _AS_PARTIAL["list"] if operation.partial else "application/json"
        path, pages = self._path(operation, collection=True), []
        while True:
            reply = await self.send("GET", path, params=params, accept=accept)
            pages.append(self._noted(reply))
            token = (json.loads(reply.body).get("metadata") or {}).get("continue")
            if reply.status != 200 or not token:
                return pages
            params["continue"] = token

    async def _put(self, operation: Operation) -> Any:
        obj = self._object(operation)
        obj["metadata"] |= await self._preconditions(operation)
        return self._noted(await self.send("PUT", self._path(operation), obj))

    async def _merge(self, operation: Operation) -> Any:
        color = operation.color or None
        metadata: dict[str, Any] = {"labels": {"color": color}, **await self._preconditions(operation)}
        if operation.finalizer:
            metadata["finalizers"] = None
        patch = {"metadata": metadata, **content(operation.resource, operation.value)}
        path = self._path(operation)
        return self._noted(await self.send("PATCH", path, patch, content_type="application/merge-patch+json"))

    async def _json(self, operation: Operation) -> Any:
        root, items = next(iter(content(operation.resource, operation.value).items()))
        key, value = next(iter(items.items()))
        patch: list[dict[str, Any]] = [{"op": "replace", "path": f"/{root}/{key}", "value": value}]
        if operation.color == "red":
            patch.insert(0, {"op": "test", "path": "/metadata/labels/color", "value": "red"})
        elif operation.color == "blue":
            patch.append({"op": "remove", "path": "/metadata/labels/color"})
        for name, wanted in (await self._preconditions(operation)).items():
            patch.append({"op": "replace", "path": f"/metadata/{name}", "value": wanted})
        path = self._path(operation)
        return self._noted(await self.send("PATCH", path, patch, content_type="application/json-patch+json"))

    async def _delete(self, operation: Operation) -> Any:
        preconditions = await self._preconditions(operation)
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        path = operation.resource.path(self.namespace, operation.name)
        return self._noted(await self.send("DELETE", path, options if preconditions else None))

    async def _clear(self, operation: Operation) -> Any:
        """Delete a collection, always by label: in a real namespace there are others' ConfigMaps."""
        params = {"labelSelector": f"color={operation.color or 'red'}"}
        return self._noted(await self.send("DELETE", self._path(operation, collection=True), params=params))

    async def watched(self, resource: Resource, start: str, selector: str) -> list[Any]:
        """The events of a watch from `start` until the object named `end` shows up."""
        events = []
        async for line in self._watch(resource, start, selector):
            event = json.loads(line)
            obj = event["object"]
            if obj.get("metadata", {}).get("name") == _NEVER_OURS or event["type"] == "BOOKMARK":
                continue
            events.append([event["type"], self.anonymous.of(obj)])
            if obj["metadata"]["name"] == "end":
                break
        return events

    def _watch(self, resource: Resource, start: str, selector: str) -> AsyncIterator[bytes]:
        params = {
            "watch": "true",
            "resourceVersion": start,
            "labelSelector": selector,
            "timeoutSeconds": "30",
        }
        headers = {"accept": "application/json"}
        return self.transport.stream(
            resource.path(self.namespace), params=params, headers=headers, idle_timeout=20
        )
