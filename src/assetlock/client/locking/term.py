"""An acquisition as the process that has it knows it: until when it may rely on it, and whether it is lost.

The local deadline is the moment of the last confirmed call, plus what it got, less a margin. It comes before the
backend lets anybody else in, whatever the two clocks say, since only lengths of time are compared.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable

from assetlock.client import clock
from assetlock.client.locking.backend import Backend, Grant
from assetlock.client.locking.errors import LockLost

log = logging.getLogger("assetlock")

LARGEST_MARGIN = 5.0
_SHARE = 0.1


def margin(ttl: float) -> float:
    """How long before its end a lock is given up, in seconds."""
    return min(_SHARE * ttl, LARGEST_MARGIN)


class Term:
    """One acquisition. ``limit``: a moment of `clock.now` beyond which it is never renewed."""

    def __init__(self, backend: Backend, grant: Grant, asked: float, limit: float = math.inf) -> None:
        self.backend = backend
        self.grant = grant
        self.ttl = grant.wanted.ttl
        self.limit = limit
        self.pid = os.getpid()
        self.ended = False
        self.trouble: Exception | None = None
        self.calling = threading.Lock()
        """Taken while a call changes how long it lasts."""
        self.loss: LockLost | None = None
        self.lost = threading.Event()
        self._on_loss: list[Callable[[LockLost], None]] = []
        self._changing = threading.Lock()
        self.confirm(asked if grant.since is None else grant.since, grant.ttl)
        if grant.when_lost is not None:
            grant.when_lost(self.lose)

    def confirm(self, asked: float, ttl: float) -> None:
        """The backend has answered a call made at ``asked``: it lasts ``ttl`` seconds from then."""
        self.deadline = asked + ttl - margin(ttl)
        self.renew_at = asked + ttl / 3 if asked + ttl < self.limit else math.inf
        self.trouble = None

    def next_ttl(self) -> float:
        """How long the next renewal may ask for."""
        return min(self.ttl, self.limit - clock.now())

    def is_over(self) -> bool:
        """Whether it must not be relied on any more."""
        return self.ended or self.loss is not None or clock.now() >= self.deadline

    def lose(self, loss: LockLost) -> None:
        """It is lost: say so to everybody who asked to know, once."""
        with self._changing:
            if self.ended or self.loss is not None:
                return
            self.loss = loss
            listeners, self._on_loss = self._on_loss, []
        log.error("%s", loss)
        self.lost.set()
        for listener in listeners:
            try:
                listener(loss)
            except Exception:
                log.exception("what was to happen at the loss of %s failed", self.grant.wanted.shown)

    def when_lost(self, listener: Callable[[LockLost], None]) -> None:
        """Call this when it is lost; at once if it is."""
        with self._changing:
            if self.loss is None:
                self._on_loss.append(listener)
                return
        listener(self.loss)

    def end(self) -> None:
        """It is given back: nothing that is heard of it later counts."""
        with self._changing:
            self.ended = True
            self._on_loss.clear()

    def out_of_time(self) -> LockLost:
        """What to say when the deadline has come."""
        why = f": {self.trouble}" if self.trouble else ""
        return self.as_loss(f"could not be renewed in time{why}")

    def as_loss(self, what: str) -> LockLost:
        """The error that says what became of it."""
        shown = self.grant.wanted.shown
        return LockLost(
            f"the lock of {shown} is lost: it {what}. What you do next is not protected.", asset=shown
        )
