"""What could not be given back at once, because the backend did not answer, is given back in the background."""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from assetlock.client import clock

log = logging.getLogger("assetlock")

PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Chore:
    """Something to be repeated while the backend is away, until ``until``: then a TTL has ended it anyway.

    ``at`` is the backend: where one thing fails, the others there are not tried in the same round.
    """

    what: str
    at: object
    do: Callable[[], object]
    until: float


class Chores:
    """One after the other, in a thread that is there only while there are any; a program that ends does not wait."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: collections.deque[Chore] = collections.deque()
        self._running = False

    def add(self, what: str, at: object, do: Callable[[], object], seconds: float) -> None:
        """Repeat this for so many seconds at most."""
        with self._mutex:
            self._waiting.append(Chore(what, at, do, clock.now() + seconds))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="assetlock-cleanup", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._mutex:
                if not self._waiting:
                    self._running = False
                    return
                round_ = list(self._waiting)
                self._waiting.clear()
            failed = self._try(round_)
            if failed:
                with self._mutex:
                    self._waiting.extendleft(reversed(failed))
                time.sleep(PAUSE)

    def _try(self, chores: list[Chore]) -> list[Chore]:
        """Those that have to be tried again."""
        failed: list[Chore] = []
        silent: set[int] = set()
        for chore in chores:
            if id(chore.at) in silent:
                failed.append(chore)
                continue
            try:
                chore.do()
            except Exception as error:
                if getattr(error, "retryable", False) and clock.now() < chore.until:
                    silent.add(id(chore.at))
                    failed.append(chore)
                else:
                    log.warning("%s did not succeed, its TTL ends it: %s", chore.what, error)
        return failed
