"""Warnings with a write that is admitted: what it names is not there, or would not be protected.

Only what was read live is warned of, as the cache may be behind; what can't be read is passed over. A warning never
keeps a write from going through.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable

from assetlock.admission.access import Access
from assetlock.admission.asset_cache import AssetCache
from assetlock.admission.facts import AssetFacts, listed
from assetlock.admission.review import Review, mapping, text
from assetlock.admission.rules.assets import NamedTarget
from assetlock.kube.errors import KubeError

MOST_NAMED = 3
"""So many assets of one request are looked at."""

PATIENCE = 1.0
"""Seconds that a write is kept waiting for a warning."""

_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"})


class Notices:
    """What a requester should know about a write that goes through."""

    def __init__(self, view: AssetCache, access: Access) -> None:
        self._view = view
        self._access = access

    async def of_lock(self, review: Review) -> tuple[str, ...]:
        """Assets of a new lock that do not exist, or whose targets it will not protect."""
        spec = mapping(review.new.get("spec"))
        named = [text(spec.get("assetName")), *map(text, listed(spec.get("assetNames")))]
        return await self._of_assets(review.namespace, filter(None, named), unfenced=True)

    async def of_lease(self, review: Review, asset: str) -> tuple[str, ...]:
        """The asset of a new Lease that does not exist."""
        if review.operation != "CREATE":
            return ()
        return await self._of_assets(review.namespace, [asset], unfenced=True)

    async def of_window(self, review: Review) -> tuple[str, ...]:
        """Assets of a window that do not exist."""
        names = map(text, listed(mapping(review.new.get("spec")).get("assetNames")))
        return await self._of_assets(review.namespace, names, unfenced=False)

    async def of_targets(
        self, targets: Iterable[NamedTarget], every: Iterable[NamedTarget]
    ) -> tuple[str, ...]:
        """New targets of a kind that is not served, and pods beside what replaces them."""
        kinds = {target.kind for target in every}
        workload = next(iter(sorted(kinds & _WORKLOADS)), None)
        beside = (
            (
                f"a {workload} and Pods are targets of one asset: while it is locked, a rollout and an orphaning "
                f"deletion of the {workload} wait for the end of the lock; name the {workload} alone"
            ),
        )
        try:
            async with asyncio.timeout(PATIENCE):
                unserved = await self._access.unserved(targets)
        except (KubeError, TimeoutError):
            unserved = []
        return (*unserved, *(beside if workload and "Pod" in kinds else ()))

    async def _of_assets(self, namespace: str, names: Iterable[str], *, unfenced: bool) -> tuple[str, ...]:
        found = []
        for name in [name for name in names if self._may_matter(self._view.known(namespace, name))][
            :MOST_NAMED
        ]:
            try:
                async with asyncio.timeout(PATIENCE):
                    asset = await self._view.read(namespace, name)
            except (KubeError, TimeoutError):
                continue
            if asset is None:
                found.append(self._absent(namespace, name))
            elif asset.unfenced and unfenced:
                found.append(f"a lock on asset {name} does not protect everything: {asset.unfenced}")
        return tuple(found)

    @staticmethod
    def _may_matter(known: AssetFacts | None) -> bool:
        return known is None or bool(known.unfenced)

    def _absent(self, namespace: str, name: str) -> str:
        near = difflib.get_close_matches(name, self._view.names_in(namespace), n=1)
        hint = f"; is {near[0]} meant?" if near else ""
        return f"there is no asset {name} in namespace {namespace}{hint}"
