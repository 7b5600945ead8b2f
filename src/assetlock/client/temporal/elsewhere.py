"""The lock of an activity, seen from a process of the worker's pool: the worker holds it, so it is only looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from assetlock.client import clock
from assetlock.client.locking import chain
from assetlock.client.locking.backend import Backend, Grant, Wanted
from assetlock.client.locking.errors import LockError
from assetlock.client.locking.held import Held
from assetlock.client.locking.term import Term
from assetlock.client.temporal import calls


class Elsewhere(Backend):
    """Nothing can be asked of it."""

    def attempt(self, wanted: Wanted, wait: float) -> NoReturn:  # noqa: ARG002
        """Not here."""
        _refuse(wanted)

    def listen(self, wanted: Wanted, wake: Callable[[], None]) -> NoReturn:  # noqa: ARG002
        """Not here."""
        _refuse(wanted)

    def renew(self, grants: Sequence[tuple[Grant, float]], timeout: float) -> NoReturn:  # noqa: ARG002
        """Not here."""
        _refuse(grants[0][0].wanted)

    def release(self, grant: Grant) -> NoReturn:
        """Not here."""
        _refuse(grant.wanted)

    def abandon(self, wanted: Wanted) -> NoReturn:
        """Not here."""
        _refuse(wanted)

    def is_current(self, grant: Grant) -> NoReturn:
        """Not here."""
        _refuse(grant.wanted)

    def holders(self, name: str) -> NoReturn:
        """Not here."""
        _refuse(Wanted("", (name,), 0))

    def forked(self) -> None:
        """Nothing to forget."""


def _refuse(wanted: Wanted) -> NoReturn:
    raise LockError(f"{wanted.shown} is held by the worker's process, not by this one", asset=wanted.shown)


@dataclass(frozen=True, slots=True)
class Carried:
    """An activity's function on its way to another process, with what it may know there of its lock."""

    function: Callable[..., Any]
    shown: str
    wanted: Wanted
    tokens: dict[str, int]
    deadline: float

    def __call__(self, *args: Any) -> Any:
        """Run it inside of its lock."""
        term = Term(Elsewhere(), Grant(self.wanted, self.tokens, self.deadline - clock.now()), clock.now())
        term.deadline = self.deadline  # the margin is off already
        held = Held.seen(term)
        mark = calls.guarded_activity.set(self.shown)
        chain.push(self, held)
        try:
            return self.function(*args)
        finally:
            chain.pop(self, held)
            calls.guarded_activity.reset(mark)
