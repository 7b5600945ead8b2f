"""Why targets could not be fenced: remembered for a while, then worth another try."""

from __future__ import annotations

from collections.abc import Collection

from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.model.asset import Target

RECHECK = 15.0
"""Seconds after which a target that could not be fenced is tried again."""


class Problems:
    """A message for each target of each asset that has one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[AssetKey, dict[Target, tuple[str, float]]] = {}

    def remember(self, key: AssetKey, target: Target, message: str) -> None:
        """This target can't be fenced for the asset, and why."""
        self._known.setdefault(key, {})[target] = (message, self._clock.monotonic() + RECHECK)

    def current(self, key: AssetKey, target: Target) -> str | None:
        """Why the target can't be fenced; ``None`` when it is worth a try."""
        message, until = self._known.get(key, {}).get(target, (None, 0.0))
        if message is not None and until <= self._clock.monotonic():
            del self._known[key][target]
            return None
        return message

    def keep(self, key: AssetKey, targets: Collection[Target]) -> None:
        """Forget the problems of other targets: nobody would ever recheck them."""
        kept = {target: known for target, known in self._known.pop(key, {}).items() if target in targets}
        if kept:
            self._known[key] = kept

    def recheck_at(self, key: AssetKey) -> float | None:
        """When the first of the asset's problems is worth another try, on the monotonic clock."""
        return min((until for _, until in self._known.get(key, {}).values()), default=None)
