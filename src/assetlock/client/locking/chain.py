"""Which locks the running code is inside of: per thread and task; child tasks and `asyncio.to_thread` inherit it."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass

from assetlock.client.locking import process
from assetlock.client.locking.backend import Backend
from assetlock.client.locking.errors import AlreadyHeld
from assetlock.client.locking.held import Handle


@dataclass(frozen=True, slots=True)
class Entry:
    """A block that was entered."""

    owner: object
    held: Handle


_chain: contextvars.ContextVar[tuple[Entry, ...]] = contextvars.ContextVar("assetlock", default=())


def push(owner: object, held: Handle) -> None:
    """The running code is inside of it from now on."""
    _chain.set((*_chain.get(), Entry(owner, held)))


def pop(owner: object, held: Handle) -> None:
    """It has left it, if it entered it in this very context."""
    chain = _chain.get()
    for index in range(len(chain) - 1, -1, -1):
        if chain[index].owner is owner and chain[index].held is held:
            _chain.set(chain[:index] + chain[index + 1 :])
            return


def innermost(owner: object) -> Handle | None:
    """What this owner entered last in this context."""
    return next((entry.held for entry in reversed(_chain.get()) if entry.owner is owner), None)


def root() -> str:
    """The id of the outermost lock that the running code is inside of."""
    return next((entry.held.id for entry in _chain.get() if _is_active(entry.held)), "")


def current_lock() -> Handle | None:
    """The lock that the running code is inside of, the innermost one; None if there is none."""
    return next((entry.held for entry in reversed(_chain.get()) if _is_active(entry.held)), None)


def already(backend: Backend, names: tuple[str, ...], reentrant: bool) -> Handle | None:
    """The handle by which this code has these names already; AlreadyHeld unless that is wanted."""
    for entry in reversed(_chain.get()):
        term = entry.held._term
        if term.backend is not backend or not _is_active(entry.held):
            continue
        common = set(names) & set(term.grant.wanted.names)
        if not common:
            continue
        if reentrant and set(names) <= set(term.grant.wanted.names):
            return entry.held
        shown = ", ".join(sorted(common))
        advice = "ask for all of them at once" if reentrant else "pass the handle on, or set reentrant=True"
        raise AlreadyHeld(
            f"{shown} is held already by the very code that asks, which would wait for itself: {advice}",
            asset=shown,
            until=entry.held.until,
        )
    return None


def _is_active(held: Handle) -> bool:
    return not held._term.ended and held._term.pid == process.current().pid
