"""What a backend does for locks, and what goes in and out. All calls block, and any thread may make them.

An acquisition has its id before the first call. `Backend.attempt` with the same id is one acquisition, however often
it is sent, and `Backend.abandon` leaves nothing of it, also if an attempt is still on its way.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from assetlock.client.locking.errors import LockError, LockLost


@dataclass(frozen=True, slots=True)
class Wanted:
    """One acquisition: all of ``names``, or nothing.

    ``max_locks``: how many may hold a name at once, as this caller says. ``made``: the name was made up by the
    client for a function, so nobody has described it anywhere. ``ttl`` in seconds.
    """

    id: str
    names: tuple[str, ...]
    ttl: float
    max_locks: int | None = None
    made: bool = False
    reason: str | None = None
    root: str = ""
    """The acquisition that the running code began with: those of one piece of work belong together."""

    @property
    def shown(self) -> str:
        """The names, for messages."""
        return ", ".join(self.names)


@dataclass(frozen=True, slots=True)
class Grant:
    """The acquisition has all it wanted. ``ttl``: how many seconds it lasts from the call that got it.

    ``since``: from this moment of the local clock on, if it was not granted by that call. ``when_lost``: has a
    function called when the backend learns by itself that it is lost. ``state`` is the backend's own.
    """

    wanted: Wanted
    tokens: Mapping[str, int]
    ttl: float
    state: object = None
    since: float | None = None
    when_lost: Callable[[Callable[[LockLost], None]], None] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Others hold it. ``seconds``: after which it may be free without anybody saying so.

    ``queued``: the backend keeps a place for it, which has to be given up if nobody waits any more.
    """

    holders: tuple[str, ...] = ()
    seconds: float | None = None
    until: datetime.datetime | None = None
    why: str = ""
    queued: bool = False


@dataclass(frozen=True, slots=True)
class Renewed:
    """The acquisition lasts ``ttl`` seconds from the call on."""

    ttl: float


Renewal = Renewed | LockError
"""`LockLost` if it is over, `BackendUnavailable` if that is not known."""


class Backend(Protocol):
    """Where locks are kept."""

    def attempt(self, wanted: Wanted, wait: float) -> Grant | Refusal:
        """Try now; with a backend that has a queue, stay in it for ``wait`` seconds. Raises `LockError`."""
        ...

    def listen(self, wanted: Wanted, wake: Callable[[], None]) -> Callable[[], None]:
        """Have ``wake`` called, from some thread, when another attempt may succeed; gives what ends that."""
        ...

    def renew(self, grants: Sequence[tuple[Grant, float]], timeout: float) -> list[Renewal]:
        """Let each last so many seconds from now on; answers within ``timeout`` seconds, one for each."""
        ...

    def release(self, grant: Grant) -> bool:
        """Give it back; whether it was held until now."""
        ...

    def abandon(self, wanted: Wanted) -> None:
        """Leave nothing of an acquisition whose outcome nobody waits for any more."""
        ...

    def is_current(self, grant: Grant) -> bool:
        """Ask whether it is held."""
        ...

    def holders(self, name: str) -> list[str]:
        """Who holds a name, as text."""
        ...

    def forked(self) -> None:
        """Forget connections and threads: they are the parent process's."""
        ...
