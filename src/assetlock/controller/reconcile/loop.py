"""Decide, apply, and again until there is nothing to do: the same for one asset and for a lock over several."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

from assetlock.controller.clock import Clock, due
from assetlock.controller.keys import AssetKey, LockKey
from assetlock.controller.reconcile.writer import Writer
from assetlock.core.decision import Decision, without
from assetlock.core.stuck import Stuck, Subject

MOST_ROUNDS = 50
"""So many decisions in a row about one thing, then others get their turn."""

MOST_FRUITLESS = 10
"""So many rounds in a row in which somebody else was always first, then it is left alone for a while."""

LEISURE = 1.0
"""Seconds between two rounds of writes that only show things, about one thing."""

Decided = TypeVar("Decided", AssetKey, LockKey)

Decide: TypeAlias = Callable[[Mapping[Subject, Stuck]], Awaitable[Decision | None]]
"""Decides, knowing what can't be written now."""


class ReconcileLoop(Generic[Decided]):
    """Carries out what is decided about one thing after another."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._shown_at: dict[Decided, float] = {}

    async def play(self, key: Decided, decide: Decide) -> float | None:
        """Do all that can be done now; ``decide`` gives ``None`` when there is nothing to decide about any more.

        Returns when to look again if nothing happens before, on the monotonic clock. Raises KubeError when
        what is there can't be read; the caller tries again later.
        """
        fruitless = 0
        for _ in range(MOST_ROUNDS):
            decision = await decide(self._writer.stuck(key))
            if decision is None:
                self._shown_at.pop(key, None)
                return None
            wake_at = due(self._clock, decision.wake_at)
            if decision.leisurely and (rests_until := self._rests_until(key)) is not None:
                return self._earliest(key, rests_until, wake_at)
            possible = without(decision, self._writer.stuck(key), key.namespace)
            if possible is None or not possible.writes:
                return self._earliest(key, wake_at)
            fruitless = 0 if await self._carry_out(key, possible) else fruitless + 1
            if fruitless > MOST_FRUITLESS:
                return self._earliest(key, self._clock.monotonic() + LEISURE, wake_at)
        return self._clock.monotonic()

    async def _carry_out(self, key: Decided, decision: Decision) -> bool:
        """Make the writes; whether any of them was made."""
        if not await self._writer.confirm(key, decision.confirm):
            return False
        made = False
        for write in decision.writes:
            if await self._writer.apply(key, write):
                made = True
            elif not decision.independent:
                break
        if decision.leisurely:
            self._shown_at[key] = self._clock.monotonic()
        return made

    def _earliest(self, key: Decided, *moments: float | None) -> float | None:
        """The first of these, or when what is stuck is worth another try."""
        known = (moment for moment in (*moments, self._writer.recheck_at(key)) if moment is not None)
        return min(known, default=None)

    def _rests_until(self, key: Decided) -> float | None:
        """When the next leisurely round may go out; ``None`` for now."""
        until = self._shown_at.get(key, float("-inf")) + LEISURE
        return until if until > self._clock.monotonic() else None
