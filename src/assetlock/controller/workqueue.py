"""Keys to look at: each at most once at a time, at once or at a deadline, again with backoff after an error.

All deadlines stand in one ordered schedule; a key has at most one, the earliest that was asked for. Keys come in
groups, which take turns: of one group only so many are handed out at the same time, however many wait.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import heapq
from collections.abc import Callable, Hashable
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

    def __init__(
        self,
        clock: Clock,
        *,
        group: Callable[[Key], str] = lambda _: "",
        most_of_a_group: int | None = None,
    ) -> None:
        self._clock = clock
        self._group = group
        self._most_of_a_group = most_of_a_group
        self._ready: dict[str, dict[Key, float]] = {}
        self._busy: set[Key] = set()
        self._busy_of: collections.Counter[str] = collections.Counter()
        self._again: set[Key] = set()
        self._deadlines: list[_Deadline[Key]] = []
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._serial = 0
        self._changed = asyncio.Event()
        self._front = asyncio.Lock()

    def __len__(self) -> int:
        return sum(map(len, self._ready.values())) + len(self._busy)

    def oldest(self) -> float:
        """For how many seconds the key that waits longest has waited; zero when none does."""
        waiting = (next(iter(keys.values())) for keys in self._ready.values())
        return max(0.0, self._clock.monotonic() - min(waiting, default=float("inf")))

    def add(self, key: Key) -> None:
        """Have the key looked at now."""
        if key in self._busy:
            self._again.add(key)
        else:
            self._ready.setdefault(self._group(key), {}).setdefault(key, self._clock.monotonic())
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
                if (group := self._next_group()) is not None:
                    return self._hand_out(group)
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._until_next_deadline()):
                        await self._changed.wait()

    def done(self, key: Key) -> None:
        """The key may be handed out again."""
        self._busy.discard(key)
        group = self._group(key)
        self._busy_of[group] -= 1
        if not self._busy_of[group]:
            del self._busy_of[group]
        if group in self._ready:
            self._changed.set()
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _next_group(self) -> str | None:
        """The first group of which another key may be handed out."""
        most = self._most_of_a_group
        return next((each for each in self._ready if most is None or self._busy_of[each] < most), None)

    def _hand_out(self, group: str) -> Key:
        """The first key of a group, which is the last to have its turn again."""
        keys = self._ready.pop(group)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._ready[group] = keys
        self._busy.add(key)
        self._busy_of[group] += 1
        return key

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
