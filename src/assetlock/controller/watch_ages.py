"""When each watch was last heard: an answer, an event or a bookmark. May be used from any thread."""

from __future__ import annotations

import time
from collections.abc import Iterable

MOST = 80.0
"""Seconds of silence after which a watch does not count any more. Bookmarks come about once a minute."""


class WatchAges:
    """One moment a watch, by the plural of what is watched."""

    def __init__(self, watches: Iterable[str]) -> None:
        self._began = time.monotonic()
        self._heard: dict[str, float] = dict.fromkeys(watches, float("-inf"))

    def heard(self, watch: str) -> None:
        """The API server has just sent something on it."""
        if watch in self._heard:
            self._heard[watch] = time.monotonic()

    def begin(self) -> None:
        """All are begun again."""
        self._began = time.monotonic()

    def ages(self) -> dict[str, float]:
        """Seconds since each was heard; infinite for one that never was."""
        now = time.monotonic()
        return {watch: now - at for watch, at in self._heard.items()}

    def silent(self) -> list[str]:
        """Those that were not heard for too long to be believed."""
        return sorted(watch for watch, age in self.ages().items() if age > MOST)

    def unheard(self, within: float) -> list[str]:
        """Those of which nothing came although they were begun so many seconds ago."""
        if time.monotonic() - self._began < within:
            return []
        return sorted(watch for watch, at in self._heard.items() if at < self._began)

    def silent_since_begun(self) -> list[str]:
        """Those that are silent although they had the time that a watch may be silent for."""
        return self.silent() if time.monotonic() - self._began > MOST else []
