"""Events on their way from the thread that watches to the loop that decides, taken in a few at a time."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
from collections.abc import Callable
from typing import Any, NoReturn

AT_ONCE = 50
"""Events that are taken in before others have their turn in the event loop."""

log = logging.getLogger(__name__)


class Inbox:
    """Made in the loop that decides; ``put`` may be called from any thread."""

    def __init__(self, take_in: Callable[[str, str | None, dict[str, Any]], None]) -> None:
        self._take_in = take_in
        self._waiting: collections.deque[tuple[str, str | None, dict[str, Any]]] = collections.deque()
        self._came = asyncio.Event()
        self._home = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, kind: str, event_type: str | None, raw: dict[str, Any]) -> None:
        """Have it taken in, in the order in which it came."""
        self._waiting.append((kind, event_type, raw))
        if not self._came.is_set():
            with contextlib.suppress(RuntimeError):  # The loop is closed: the process ends.
                self._home.call_soon_threadsafe(self._came.set)

    async def run(self) -> NoReturn:
        """Take in what comes, until cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._waiting:
                for _ in range(min(AT_ONCE, len(self._waiting))):
                    self._take(*self._waiting.popleft())
                await asyncio.sleep(0)

    def _take(self, kind: str, event_type: str | None, raw: dict[str, Any]) -> None:
        """One object that can't be read keeps nobody from the others."""
        try:
            self._take_in(kind, event_type, raw)
        except Exception:
            name = raw.get("metadata", {}).get("name")
            log.exception("an event could not be taken in", extra={"kind": kind, "object": name})
