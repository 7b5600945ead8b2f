"""Decide, apply, and again until there is nothing to do: the same for one asset and for a lock over several."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from assetlock.controller.clock import Clock, due
from assetlock.controller.keys import AssetKey, LockKey
from assetlock.controller.reconcile.writer import Writer
from assetlock.core.decision import Decision

MOST_ROUNDS = 50
"""So many decisions in a row about one thing, then others get their turn."""

LEISURE = 1.0
"""Seconds between two rounds of writes that only show things, about one thing."""

Decided = TypeVar("Decided", AssetKey, LockKey)


class ReconcileLoop(Generic[Decided]):
    """Carries out what is decided about one thing after another."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._shown_at: dict[Decided, float] = {}

    async def play(self, key: Decided, decide: Callable[[], Awaitable[Decision | None]]) -> float | None:
        """Do all that is to be done now; ``decide`` gives ``None`` when there is nothing to decide about any more.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises ApiError when
        the API server did not do its part; the caller tries again later.
        """
        for _ in range(MOST_ROUNDS):
            decision = await decide()
            if decision is None:
                self._shown_at.pop(key, None)
                return None
            wake_at = due(self._clock, decision.wake_at)
            if decision.leisurely and (rests_until := self._rests_until(key)) is not None:
                return rests_until if wake_at is None else min(rests_until, wake_at)
            if not decision.writes:
                return wake_at
            if not await self._writer.confirm(key, decision.confirm):
                continue
            for write in decision.writes:
                if not await self._writer.apply(key, write):
                    break
            if decision.leisurely:
                self._shown_at[key] = self._clock.monotonic()
        return self._clock.monotonic()

    def _rests_until(self, key: Decided) -> float | None:
        """When the next leisurely round may go out; ``None`` for now."""
        until = self._shown_at.get(key, float("-inf")) + LEISURE
        return until if until > self._clock.monotonic() else None
