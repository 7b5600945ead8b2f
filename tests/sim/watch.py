"""Watches: a resource's changes from a revision on, as one client's selectors see them, with bookmarks."""

import asyncio
from collections.abc import AsyncIterator, Iterator
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
    return encode({"type": kind, "object": obj}) + b"\n"


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
        return line("MODIFIED" if old else "ADDED", scope.view.one(new.obj))
    if old is not None:
        return line("DELETED", scope.view.one(_at(old, change.revision)))
    return None


def _at(version: Version, revision: int) -> Json:
    metadata = {**version.obj["metadata"], "resourceVersion": str(revision)}
    return {**version.obj, "metadata": metadata}


def _initial(store: Store, scope: Scope) -> Iterator[bytes]:
    """The objects that a watch without a start begins with."""
    for _, version in store.select(scope.served, scope.namespace):
        if scope.selects(version.obj):
            yield line("ADDED", scope.view.one(version.obj))


async def stream(
    store: Store, scope: Scope, start: int | None, *, bookmarks: bool, seconds: float
) -> AsyncIterator[bytes]:
    """The lines of a watch from after revision `start` (None: begin with all that is there) for so many seconds."""
    loop = asyncio.get_running_loop()
    end, bookmark_at = loop.time() + seconds, loop.time() + BOOKMARK_EVERY
    if start is None:
        start = store.revision
        for added in _initial(store, scope):
            yield added
    if start < store.compacted:
        yield failure(failures.too_old(start, store.compacted))
        return
    log = store.log(scope.served)
    position, seen = _first_after(log.changes, start), start
    while loop.time() < end:
        while position < len(log.changes):
            change = log.changes[position]
            position, seen = position + 1, max(seen, change.revision)
            found = event(scope, change) if change.revision > start else None
            if found is not None:
                yield found
        if bookmarks and loop.time() >= bookmark_at:
            bookmark_at += BOOKMARK_EVERY
            yield line("BOOKMARK", scope.view.bookmark(max(seen, store.revision)))
            continue
        waiter = loop.create_future()
        log.waiters[waiter] = None
        deadline = min(end, bookmark_at) if bookmarks else end
        timer = loop.call_at(deadline, _resolve, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            log.waiters.pop(waiter, None)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _first_after(changes: list[Change], revision: int) -> int:
    low, high = 0, len(changes)
    while low < high:
        middle = (low + high) // 2
        if changes[middle].revision <= revision:
            low = middle + 1
        else:
            high = middle
    return low
