"""Takes assetlock out of a cluster, with locks held or not, with an operator running or not.

The order matters. The webhooks go first, as some refuse writes when nobody answers; the policies still protect what
is locked. Windows are suspended, so that they make no new locks. AssetLocks and Leases are deleted, and a running
operator frees the targets as at any release. Then the policies go, and the controller with them. Only then are the
stamps removed that are still there: no right to write through a lock is needed for that. Last goes the rest. It may
be interrupted and repeated at any point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from assetlock import marked
from assetlock.controller.clock import SystemClock
from assetlock.controller.leadership import present_leader
from assetlock.core import names
from assetlock.install import Manifest, manifests, workloads
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import Conflict, Forbidden, KindNotFound, KubeError, NotFound
from assetlock.kube.resources import ASSETLOCKS, LEASES, MAINTENANCE_WINDOWS, Object, Resource

ROUNDS = 20
PAUSE = 0.5
FREED_WITHIN = 30.0

_WEBHOOKS = ("MutatingWebhookConfiguration",)
_POLICIES = ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "Deployment")


class UninstallError(Exception):
    """Something of it could not be removed; says what, and why."""


async def end_locks(api: Api, namespace: str, say: Callable[[str], None]) -> None:
    """End every lock, free every target, and take down what could refuse a write: policies, webhooks, controller.

    ``namespace`` is the operator's. What is left then is in nobody's way. Raises `UninstallError`.
    """
    for manifest in _ours(_WEBHOOKS):
        await _delete(api, manifest, namespace, say)
    await _suspend_windows(api, say)
    for resource, selector in ((ASSETLOCKS, ""), (LEASES, names.ASSET_LABEL)):
        await _delete_all(api, resource, selector, say)
    if await _leader(api, namespace):
        await _until(lambda: _nothing_closed(api), FREED_WITHIN)
    for manifest in _ours(_POLICIES):
        await _delete(api, manifest, namespace, say)
    await _sweep(api, say)


async def remove(api: Api, namespace: str, say: Callable[[str], None], *, definitions: bool) -> None:
    """Remove what `install` made; with ``definitions`` also the kinds, and so every Asset."""
    rest = [one for one in _ours() if one["kind"] not in (*_WEBHOOKS, *_POLICIES)]
    for manifest in (*reversed(rest), *(manifests("crds") if definitions else ())):
        await _delete(api, manifest, namespace, say)
    # An operator that runs elsewhere marks namespaces for as long as there are assets in them.
    await _sweep(api, say)


async def _suspend_windows(api: Api, say: Callable[[str], None]) -> None:
    for _ in range(ROUNDS):
        active = [one for one in await _list(api, MAINTENANCE_WINDOWS) if not one["spec"].get("suspend")]
        if not active:
            return
        for window in active:
            metadata = window["metadata"]
            patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"suspend": True}}
            try:
                await api.merge_patch(MAINTENANCE_WINDOWS, metadata["namespace"], metadata["name"], patch)
            except (Conflict, NotFound):
                continue
            say(f"suspended MaintenanceWindow {metadata['name']} in namespace {metadata['namespace']}")
    raise UninstallError(
        "MaintenanceWindows are changed all the time: stop what writes them, and repeat this"
    )


async def _delete_all(api: Api, resource: Resource, selector: str, say: Callable[[str], None]) -> None:
    """Delete every object, and those that come meanwhile."""
    for _ in range(ROUNDS):
        found = [
            one for one in await _list(api, resource, selector) if "deletionTimestamp" not in one["metadata"]
        ]
        if not found:
            return
        for one in found:
            if await _delete_object(api, resource, one):
                say(
                    f"deleted {resource.kind} {one['metadata']['name']} in namespace {one['metadata']['namespace']}"
                )
    raise UninstallError(
        f"there are new {resource.plural} all the time: stop what makes them, and repeat this"
    )


async def _delete_object(api: Api, resource: Resource, one: Object) -> bool:
    metadata = one["metadata"]
    try:
        await api.delete(
            resource,
            metadata.get("namespace"),
            metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )
    except (Conflict, NotFound):
        return False
    return True


async def _list(api: Api, resource: Resource, selector: str = "") -> list[Object]:
    """All objects; none where the kind is not installed any more."""
    try:
        return list((await api.list(resource, label_selector=selector)).items)
    except NotFound:
        return []


async def _leader(api: Api, namespace: str) -> str | None:
    """Who leads; nobody either if that can't be seen."""
    try:
        return await present_leader(api, SystemClock(), namespace=namespace)
    except Forbidden:
        return None


async def _nothing_closed(api: Api) -> bool:
    return not any(one.is_closed for one in (await marked.find(api)).objects)


async def _until(holds: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while not await holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(PAUSE)
    return True


def _ours(kinds: Iterable[str] | None = None) -> list[Manifest]:
    """What `install` may have made, or of that these kinds."""
    every = [*manifests("manifests"), *workloads("any")]
    if kinds is None:
        return every
    order = list(kinds)
    return sorted((one for one in every if one["kind"] in order), key=lambda one: order.index(one["kind"]))


async def _delete(api: Api, manifest: Manifest, namespace: str, say: Callable[[str], None]) -> None:
    """Delete an object that `install` made, if it is there."""
    try:
        resource = await Discovery(api).resource_for(manifest["apiVersion"], manifest["kind"])
    except KindNotFound:
        return
    where = namespace if resource.namespaced else None
    name = namespace if manifest["kind"] == "Namespace" else manifest["metadata"]["name"]
    for _ in range(ROUNDS):
        try:
            present = await api.get(resource, where, name)
        except NotFound:
            return
        if "deletionTimestamp" in present["metadata"] or not _is_ours(present):
            return
        if await _delete_object(api, resource, present):
            say(f"deleted {manifest['kind']} {name}")
            return
    raise UninstallError(f"{manifest['kind']} {name} is changed all the time")


def _is_ours(present: Object) -> bool:
    """A namespace that somebody else made stays."""
    labels = present["metadata"].get("labels") or {}
    return present["kind"] != "Namespace" or labels.get("app.kubernetes.io/name") == "assetlock"


async def _sweep(api: Api, say: Callable[[str], None]) -> None:
    """Remove stamps and guards that nobody else removes. A policy that has just gone may refuse for a moment."""
    left: list[str] = []
    for _ in range(ROUNDS):
        found = await marked.find(api)
        left = [problem for one in found.objects if (problem := await _freed(api, one, say))]
        if not left:
            for kind in found.unseen:
                say(f"could not look for locked {kind}: no right to list them")
            return
        await asyncio.sleep(PAUSE)
    raise UninstallError("these are still marked as locked: " + "; ".join(left))


async def _freed(api: Api, one: marked.Marked, say: Callable[[str], None]) -> str:
    """What keeps the object marked; empty when it is free."""
    try:
        await marked.unmark(api, one)
    except NotFound:
        return ""
    except KubeError as error:
        return f"{one.title}: {error}"
    say(f"freed {one.title}")
    return ""
