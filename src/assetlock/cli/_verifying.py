"""What ``assetlock operator verify`` does: a whole lock, on an object of its own."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import click

from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, NotFound
from assetlock.kube.resources import ASSETLOCKS, ASSETS, CONFIG_MAPS, Object, Resource

PAUSE = 0.2
TRIES = 10
_ORDER = (ASSETLOCKS, ASSETS, CONFIG_MAPS)


async def verify(api: Api, namespace: str, seconds: float) -> None:
    """Lock a ConfigMap that is made for it, see the stamp come and go, and remove everything again.

    Raises KubeError when something is refused, TimeoutError when nothing follows within that many seconds.
    """
    name = f"verify-{uuid.uuid4().hex[:8]}"
    try:
        async with asyncio.timeout(seconds):
            await _hold(api, namespace, name)
            await _release(api, namespace, name)
    finally:
        for resource in _ORDER:
            await _remove(api, resource, namespace, name)


async def _hold(api: Api, namespace: str, name: str) -> None:
    metadata = {"name": name, "namespace": namespace}
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": name}
    await api.create(CONFIG_MAPS, namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await api.create(ASSETS, namespace, _own("Asset", metadata, {"type": "Test", "targets": [target]}))
    click.echo(f"made asset {name}: the webhooks answer")
    lock = {"assetName": name, "ttl": "1m", "reason": "assetlock operator verify"}
    await api.create(ASSETLOCKS, namespace, _own("AssetLock", metadata, lock))
    while (await api.get(ASSETLOCKS, namespace, name)).get("status", {}).get("state") != "Held":  # noqa: ASYNC110
        await asyncio.sleep(PAUSE)
    if not await _is_stamped(api, namespace, name):
        raise click.ClickException(f"lock {name} is held, but its target is not stamped")
    click.echo(f"locked asset {name}: the controller grants and stamps")


async def _release(api: Api, namespace: str, name: str) -> None:
    await _remove(api, ASSETLOCKS, namespace, name)
    while await _is_stamped(api, namespace, name):  # noqa: ASYNC110
        await asyncio.sleep(PAUSE)
    click.echo(f"released asset {name}")


async def _is_stamped(api: Api, namespace: str, name: str) -> bool:
    metadata = (await api.get(CONFIG_MAPS, namespace, name))["metadata"]
    return names.stamp_key(name, namespace) in metadata.get("annotations", {})


async def _remove(api: Api, resource: Resource, namespace: str, name: str) -> None:
    for _ in range(TRIES):
        try:
            metadata = (await api.get(resource, namespace, name))["metadata"]
            uid, version = metadata["uid"], metadata["resourceVersion"]
            await api.delete(resource, namespace, name, uid=uid, resource_version=version)
        except Conflict:
            continue
        except NotFound:
            return


def _own(kind: str, metadata: dict[str, str], spec: dict[str, Any]) -> Object:
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
