"""Keys to look at: each at most once at a time, at once or at a deadline, again with backoff after an error.

All deadlines stand in one ordered schedule; a key has at most one, the earliest that was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from assetlock.controller.clock import Clock

Key = TypeVar("Key", bound=Hashable)

FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 10.0

RESOLUTION = 1e-6
"""Seconds by which timers are late rather than early: nobody wakes up before there is something to do."""


@dataclasses.dataclass(order=True, slots=True)
class _Deadline(Generic[Key]):
    at: float
    serial: int
    key: Key = dataclasses.field(compare=False)


class WorkQueue(Generic[Key]):
    """A level-triggered queue: adding a key that is being worked on has it looked at once more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[Key, None] = {}
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._deadlines: list[_Deadline[Key]] = []
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._serial = 0
        self._changed = asyncio.Event()
        self._front = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._ready) + len(self._busy)

    def add(self, key: Key) -> None:
        """Have the key looked at now."""
        if key in self._busy:
            self._again.add(key)
        else:
            self._ready[key] = None
            self._changed.set()

    def add_at(self, key: Key, at: float) -> None:
        """Have the key looked at when the monotonic clock shows ``at``, unless it is due earlier."""
        if self._due.get(key, float("inf")) <= at:
            return
        self._due[key] = at
        self._serial += 1
        heapq.heappush(self._deadlines, _Deadline(at, self._serial, key))
        self._changed.set()

    def retry(self, key: Key, at_least: float = 0.0) -> None:
        """Have the key looked at after a backoff that doubles with each failure, or later if asked."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        backoff = min(FIRST_BACKOFF * 2 ** (failures - 1), LONGEST_BACKOFF)
        self.add_at(key, self._clock.monotonic() + max(backoff, at_least))

    def succeeded(self, key: Key) -> None:
        """Forget the failures of the key."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """The next key; call ``done`` when through with it. Of several who ask one waits, the others behind it."""
        async with self._front:
            while True:
                self._collect_due()
                if self._ready:
                    key = next(iter(self._ready))
                    del self._ready[key]
                    self._busy.add(key)
                    return key
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._until_next_deadline()):
                        await self._changed.wait()

    def done(self, key: Key) -> None:
        """The key may be handed out again."""
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _collect_due(self) -> None:
        now = self._clock.monotonic()
        while self._deadlines and self._deadlines[0].at <= now:
            deadline = heapq.heappop(self._deadlines)
            if self._due.get(deadline.key) == deadline.at:
                del self._due[deadline.key]
                self.add(deadline.key)

    def _until_next_deadline(self) -> float | None:
        if not self._deadlines:
            return None
        return max(0.0, self._deadlines[0].at - self._clock.monotonic()) + RESOLUTION
