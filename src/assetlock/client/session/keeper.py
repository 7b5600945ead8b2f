"""Keeps one lock alive from threads of its own, so that nothing its user does can starve it, and notices its loss.

One thread renews, and tries again until the deadline whatever the API server answers; the other watches the lock, so
that a revocation is noticed at once. Both use connections of their own. The deadline itself is for the user of this
to watch: `term.deadline`, by `clock.now`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from assetlock.client import clock
from assetlock.client.api import ClientError, Forbidden, Object
from assetlock.client.session.locks import Lock
from assetlock.client.session.requests import Lost
from assetlock.client.session.term import Term

_TICK = 1.0
"""Seconds for which a thread sleeps at most: no timer counts on while the machine sleeps."""

_POLLS_EVERY = 5.0
_WATCHED_FOR = 300


class Keeper:
    """Renews a lock that is held until `stop`. ``notify`` is called, from another thread, when `lost` is set."""

    def __init__(
        self,
        lock: Lock,
        term: Term,
        *,
        notify: Callable[[], None] = lambda: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.term = term
        self.lost: Lost | None = None
        self._lock = lock
        self._notify = notify
        self._warn = warn
        self._stopping = threading.Event()
        self._failing = False
        self._threads = [
            threading.Thread(target=self._renew, name="assetlock-renewal", daemon=True),
            threading.Thread(target=self._watch, name="assetlock-watch", daemon=True),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Renew no more; a request that is on its way is not waited for."""
        self._stopping.set()

    def _renew(self) -> None:
        due, confirmed = clock.now() + self.term.renews_every, True
        while not self._rests(due if confirmed else min(due, clock.now() + _TICK)):
            now = clock.now()
            try:
                if now < due:
                    confirmed = self._lock.confirm(self._lock.read(), self.term)
                else:
                    confirmed, due = False, now + self.term.retries_every
                    self._lock.renew(self.term)
                    due = now + self.term.renews_every
                self._failing = False
            except Lost as lost:
                self._lose(lost)
            except ClientError as error:
                self._complain(error)

    def _complain(self, error: ClientError) -> None:
        """Once for each outage."""
        if not self._failing:
            self._failing = True
            self._warn(f"the lock can't be renewed now: {error}")

    def _rests(self, until: float) -> bool:
        """Sleep until then; whether it is time to stop."""
        while (left := until - clock.now()) > 0 and not self._stopping.is_set():
            self._stopping.wait(min(left, _TICK))
        return self._stopping.is_set()

    def _watch(self) -> None:
        version = None
        while not self._stopping.is_set():
            try:
                if version is None:
                    version = self._see(self._lock.read())
                for kind, seen in self._lock.watch(version, _WATCHED_FOR):
                    version = self._see(self._lock.read() if kind == "DELETED" else seen)
            except Lost as lost:
                self._lose(lost)
            except Forbidden:
                version = None
                self._rests(clock.now() + _POLLS_EVERY)
            except ClientError:
                version = None
                self._rests(clock.now() + self.term.retries_every)

    def _see(self, seen: Object) -> str:
        self._lock.confirm(seen, self.term)
        return str(seen["metadata"]["resourceVersion"])

    def _lose(self, lost: Lost) -> None:
        if not self._stopping.is_set():
            self.lost = self.lost or lost
            self._stopping.set()
            self._notify()
