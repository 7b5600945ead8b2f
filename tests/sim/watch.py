"""Watches: a resource's changes from a revision on, as one client's selectors see them, with bookmarks."""

import asyncio
import bisect
import contextvars
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.sim import failures
from tests.sim.kinds import Served
from tests.sim.render import View
from tests.sim.selection import Predicate
from tests.sim.store import Change, Json, Store, Version, encode

BOOKMARK_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class Scope:
    """What a list or a watch is about."""

    served: Served
    namespace: str
    selects: Predicate
    view: View

    def wants(self, change: Change) -> bool:
        """Whether a change is in the namespace."""
        return self.namespace in ("", change.key.namespace)


def line(kind: str, obj: Json) -> bytes:
    """One event as it goes over the wire."""
    return _line(kind, encode(obj))


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)


def failure(refusal: failures.Refusal) -> bytes:
    """The event that ends a watch which can't go on."""
    return line("ERROR", refusal.status())


def event(scope: Scope, change: Change) -> bytes | None:
    """What a watcher with this scope is told of a change: leaving the selection looks like a deletion."""
    if not scope.wants(change):
        return None
    old = change.old if change.old and scope.selects(change.old.obj) else None
    new = change.new if change.new and scope.selects(change.new.obj) else None
    if new is not None:
        return _line("MODIFIED" if old else "ADDED", scope.view.body(new))
    if old is not None:
        return _line("DELETED", scope.view.body(_at(old, change.revision)))
    return None


def _at(version: Version, revision: int) -> Version:
    if version.revision == revision:
        return version
    metadata = {**version.obj["metadata"], "resourceVersion": str(revision)}
    return Version({**version.obj, "metadata": metadata}, revision)


class Feed:
    """One watch, from after revision `start` (None: begin with all that is there) for so many seconds.

    It hands its lines on as they come about, and None at its end. It goes on whatever becomes of who reads it.
    """

    def __init__(
        self, store: Store, scope: Scope, start: int | None, *, bookmarks: bool, seconds: float
    ) -> None:
        self._store = store
        self._scope = scope
        self._start = start
        self._bookmarks = bookmarks
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.Context()
        self._log = store.log(scope.served)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._send: Callable[[bytes | None], None] = _ignore

    def open(self, send: Callable[[bytes | None], None]) -> None:
        """Begin."""
        self._send = send
        if self._start is not None and self._start < self._store.compacted:
            send(failure(failures.too_old(self._start, self._store.compacted)))
            send(None)
            return
        for found in self._initial() if self._start is None else self._since(self._start):
            send(found)
        self._log.listeners[self._on_change] = None
        self._after("end", self._seconds, self._end)
        if self._bookmarks:
            self._after("bookmark", BOOKMARK_EVERY, self._bookmark)

    def close(self) -> None:
        """Say nothing more."""
        self._send = _ignore
        self._log.listeners.pop(self._on_change, None)
        for timer in self._timers.values():
            timer.cancel()

    def _initial(self) -> Iterator[bytes]:
        for _, version in self._store.select(self._scope.served, self._scope.namespace):
            if self._scope.selects(version.obj):
                yield _line("ADDED", self._scope.view.body(version))

    def _since(self, start: int) -> Iterator[bytes]:
        changes = self._log.changes
        for change in changes[bisect.bisect_right(changes, start, key=lambda change: change.revision) :]:
            if (found := event(self._scope, change)) is not None:
                yield found

    def _on_change(self, change: Change) -> None:
        found = event(self._scope, change)
        if found is not None:
            self._send(found)

    def _bookmark(self) -> None:
        self._send(line("BOOKMARK", self._scope.view.bookmark(self._store.revision)))
        self._after("bookmark", BOOKMARK_EVERY, self._bookmark)

    def _end(self) -> None:
        send = self._send
        self.close()
        send(None)

    def _after(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        """The server's timers: they are not stopped with the process that happens to read."""
        self._timers[name] = self._loop.call_later(seconds, then, context=self._context)


def _ignore(_line: bytes | None) -> None:
    """Nobody reads."""
