"""Ending what holds an asset's lock while no operator runs: the operator's decisions, with somebody's own rights.

Every step is a compare-and-swap and is found done by whoever comes next, be that this again after a crash or the
operator: running it twice, or beside one, does no harm. Nobody is granted the lock in the course of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from assetlock.controller.cache.cache import Cache
from assetlock.controller.cache.observer import Observer
from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey, Concerned, Key
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.pods import Pods
from assetlock.controller.reconcile.asset import AssetReconciler
from assetlock.controller.reconcile.looking import Looking
from assetlock.controller.reconcile.writer import Publisher, Writer
from assetlock.controller.target_rights import TargetRights
from assetlock.controller.targets.targets import Targets
from assetlock.core import names
from assetlock.core.decision import Write
from assetlock.core.observation import Limits, ObservedNamespace, ObservedTarget
from assetlock.core.rules.revoking import revocation_of
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES
from assetlock.model.asset import Asset


async def revoke(
    api: Api, clock: Clock, key: AssetKey, by: str, publisher: Publisher, wrote: Callable[[Key, Write], None]
) -> list[str]:
    """Make the holder's AssetLock terminal, clear the Lease, the Asset's holders, the stamps and the guards.

    Returns why stamps stay, a line for each; empty when the asset is free. Raises KubeError: `NotFound` if
    there is no such asset.
    """
    async with contextlib.AsyncExitStack() as open_watches:
        cache = Cache()
        discovery = Discovery(api, clock=clock.monotonic)
        targets = Targets(api, discovery, clock, _nobody, trials=False)
        namespaces, pods = Namespaces(api, clock, _nobody), Pods(api, clock, _nobody)
        for watching in (targets, namespaces, pods):
            open_watches.push_async_callback(watching.close)
        await _look(api, cache, clock, key)
        revocation = revocation_of(Observer(cache, clock, Limits()).observe(key), by)
        reconciler = AssetReconciler(
            cache,
            Observer(cache, clock, Limits(), revocation=revocation),
            Writer(api, cache, targets, namespaces, pods, clock, publisher, changed=_nobody, wrote=wrote),
            Looking(targets, namespaces, None, _nobody),
            targets,
            namespaces,
            pods,
            TargetRights(api, discovery, clock, _nobody),
            clock,
        )
        await reconciler.reconcile(key)
        asset = cache.assets.get(key.namespace, key.name)
        found = await targets.observe(key, asset)
        return list(_left(key, asset, found, await namespaces.observe(key, asset)))


def _nobody(_: Concerned) -> None:
    """Tell nobody of a change: there is one look only."""


async def _look(api: Api, cache: Cache, clock: Clock, key: AssetKey) -> None:
    """Leases before AssetLocks, as the controller lists them."""
    selector = f"{names.ASSET_LABEL}={key.name}"
    for resource, labels in ((LEASES, selector), (ASSETLOCKS, "")):
        found = await api.list(resource, key.namespace, label_selector=labels)
        cache.replace(resource.kind, found.items, int(found.resource_version), clock.monotonic())
    asset = await api.get(ASSETS, key.namespace, key.name)
    cache.put({**asset, "kind": ASSETS.kind}, clock.monotonic())


def _left(
    key: AssetKey,
    asset: Asset | None,
    targets: Sequence[ObservedTarget],
    namespaces: Sequence[ObservedNamespace],
) -> Iterator[str]:
    if asset is not None and asset.status.holders:
        yield f"{asset.status.holders[0].identity} got the lock meanwhile: an operator runs"
        return
    stamp, guard = (
        names.stamp_key(key.name, key.namespace),
        names.namespace_fence_key(key.name, key.namespace),
    )
    for target in targets:
        if stamp in target.annotations:
            yield target.problem or f"{target.target.kind} {target.target.name} changes all the time"
        elif target.problem and target.uid is None:
            yield target.problem
    for space in namespaces:
        if space.problem or guard in space.annotations:
            yield space.problem or f"namespace {space.name} changes all the time"
