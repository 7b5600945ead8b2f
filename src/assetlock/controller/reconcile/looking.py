"""What an asset's targets and their namespaces are: the part of an observation that other watches have to bring.

A kind whose API server hangs, or a trial write that somebody's webhook holds, must hold up nothing but the asset
itself, and of that only what depends on its targets. So nobody waits for long here either.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

from assetlock.controller.keys import AssetKey, Concerned
from assetlock.controller.namespaces import Namespaces
from assetlock.controller.reconcile.stuck_writes import PATIENCE, StuckWrites
from assetlock.controller.targets.targets import Targets
from assetlock.core.observation import ObservedNamespace, ObservedTarget
from assetlock.core.stuck import unseen
from assetlock.kube.errors import KubeError
from assetlock.model.asset import Asset


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What was seen for this version of an asset."""

    asset: Asset | None
    targets: tuple[ObservedTarget, ...]
    namespaces: tuple[ObservedNamespace, ...]


class Looking:
    """Looks for one asset at a time; ``changed`` is called when what took long is there."""

    def __init__(
        self,
        targets: Targets,
        namespaces: Namespaces,
        stuck: StuckWrites | None,
        changed: Callable[[Concerned], None],
    ) -> None:
        self._targets = targets
        self._namespaces = namespaces
        self._stuck = stuck
        self._changed = changed
        self._late: dict[AssetKey, asyncio.Task[Seen]] = {}

    async def look(self, key: AssetKey, asset: Asset | None) -> Seen | None:
        """What is there now; ``None`` while that can't be seen: why is noted, or raised where nobody notes it."""
        if self._stuck is None:
            return await self._see(key, asset)
        subject = unseen(key.namespace, key.name)
        if key not in self._late and subject in self._stuck.of(key):
            return None
        looking = self._late.pop(key, None) or asyncio.create_task(self._see(key, asset))
        try:
            await asyncio.wait({looking}, timeout=PATIENCE)
        except asyncio.CancelledError:
            looking.cancel()
            raise
        if not looking.done():
            self._late[key] = looking
            self._stuck.unanswered(key, subject, "what its targets are can't be seen yet: no answer")
            looking.add_done_callback(lambda _: self._changed(key))
            return None
        try:
            seen = looking.result()
        except KubeError as error:
            self._stuck.failed(key, subject, error)
            return None
        self._stuck.made(subject)
        return seen if seen.asset is asset else await self.look(key, asset)

    def forget(self) -> None:
        """Look no longer for what takes long."""
        for looking in self._late.values():
            looking.cancel()
        self._late.clear()

    async def _see(self, key: AssetKey, asset: Asset | None) -> Seen:
        targets = await self._targets.observe(key, asset)
        return Seen(asset, targets, await self._namespaces.observe(key, asset))
