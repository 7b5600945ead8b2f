"""Whether the event loop gets on: how late it is, and when it was last seen to turn."""

from __future__ import annotations

import asyncio
import collections
import time
from typing import NoReturn

from assetlock.controller import metrics

INTERVAL = 0.1
REMEMBERED = 60.0


class Pulse:
    """Beats in the loop that runs it; may be asked from any thread."""

    def __init__(self) -> None:
        self._beat_at = time.monotonic()
        self._late: collections.deque[tuple[float, float]] = collections.deque()

    async def run(self) -> NoReturn:
        """Beat until cancelled."""
        while True:
            due = time.monotonic() + INTERVAL
            await asyncio.sleep(INTERVAL)
            self._beat_at = time.monotonic()
            self._note(max(0.0, self._beat_at - due))

    def is_alive(self, within: float) -> bool:
        """Whether the loop has turned in the last so many seconds."""
        return time.monotonic() - self._beat_at < within

    def longest_lag(self) -> float:
        """By how many seconds the loop was late at most, in the last minute."""
        late = [lag for at, lag in tuple(self._late) if at > time.monotonic() - REMEMBERED]
        return max([*late, time.monotonic() - self._beat_at - INTERVAL, 0.0])

    def _note(self, lag: float) -> None:
        metrics.LOOP_LAG.observe(lag)
        while self._late and (self._late[0][0] < self._beat_at - REMEMBERED or self._late[0][1] <= lag):
            self._late.popleft()
        while self._late and self._late[-1][1] <= lag:
            self._late.pop()
        self._late.append((self._beat_at, lag))
