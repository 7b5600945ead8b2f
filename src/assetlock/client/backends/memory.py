"""Locks in memory, whose fate a test decides."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType

from assetlock.client.locking import configured
from assetlock.client.locking.backend import Backend, Grant, Refusal, Renewal, Renewed, Wanted
from assetlock.client.locking.errors import BackendUnavailable, LockError, LockLost


class FakeLocks(Backend):
    """A backend for tests. ``down``: it does not answer. ``taken`` are the names that were locked, in order."""

    def __init__(self) -> None:
        self.down = False
        self.taken: list[str] = []
        self._holders: dict[str, dict[str, str]] = {}
        self._losers: dict[str, list[Callable[[LockLost], None]]] = {}
        self._wakes: list[Callable[[], None]] = []
        self._tokens = itertools.count(1)
        self._mutex = threading.RLock()

    def __enter__(self) -> FakeLocks:
        configured.use(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        configured.use(None)

    def hold(self, *names: str, by: str = "somebody else") -> None:
        """Let somebody else hold these."""
        with self._mutex:
            for name in names:
                self._holders.setdefault(name, {})[uuid.uuid4().hex] = by

    def free(self, *names: str) -> None:
        """Let everybody release these, as if by themselves."""
        self._end(names, "was released by somebody else")

    def expire(self, *names: str) -> None:
        """Let the locks of these expire."""
        self._end(names, "has expired")

    def revoke(self, *names: str, by: str = "an administrator") -> None:
        """Let somebody end the locks of these."""
        self._end(names, f"was revoked by {by}")

    def attempt(self, wanted: Wanted, wait: float) -> Grant | Refusal:  # noqa: ARG002
        """Take all that is wanted, or nothing."""
        with self._mutex:
            self._answer(wanted)
            others = [self._others(name, wanted) for name in wanted.names]
            if any(len(who) >= (wanted.max_locks or 1) for who in others):
                return Refusal(tuple(who for each in others for who in each))
            for name in wanted.names:
                self._holders.setdefault(name, {})[wanted.id] = "this program"
                self.taken.append(name)
            tokens = {name: next(self._tokens) for name in wanted.names}
            return Grant(wanted, tokens, wanted.ttl, when_lost=lambda call: self._tell(wanted, call))

    def listen(self, wanted: Wanted, wake: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        """Wake when anything is freed."""
        with self._mutex:
            self._wakes.append(wake)
        return lambda: self._wakes.remove(wake)

    def renew(self, grants: Sequence[tuple[Grant, float]], timeout: float) -> list[Renewal]:  # noqa: ARG002
        """Renew what is still held."""
        return [self._renewal(grant.wanted, ttl) for grant, ttl in grants]

    def release(self, grant: Grant) -> bool:
        """Free it."""
        with self._mutex:
            self._answer(grant.wanted)
            held = self.is_current(grant)
            self.abandon(grant.wanted)
            return held

    def abandon(self, wanted: Wanted) -> None:
        """Free what it has."""
        with self._mutex:
            self._answer(wanted)
            for name in wanted.names:
                self._holders.get(name, {}).pop(wanted.id, None)
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    def is_current(self, grant: Grant) -> bool:
        """Whether it has everything still."""
        wanted = grant.wanted
        return all(wanted.id in self._holders.get(name, {}) for name in wanted.names)

    def holders(self, name: str) -> list[str]:
        """Who holds it."""
        return list(self._holders.get(name, {}).values())

    def forked(self) -> None:
        """A child sees what it was when it began."""

    def _answer(self, wanted: Wanted) -> None:
        if self.down:
            said = f"{wanted.shown} can't be locked now: the test says that nothing answers"
            raise BackendUnavailable(said, asset=wanted.shown)

    def _others(self, name: str, wanted: Wanted) -> list[str]:
        return [who for id_, who in self._holders.get(name, {}).items() if id_ != wanted.id]

    def _renewal(self, wanted: Wanted, ttl: float) -> Renewal:
        try:
            self._answer(wanted)
        except LockError as error:
            return error
        if all(wanted.id in self._holders.get(name, {}) for name in wanted.names):
            return Renewed(ttl)
        return _loss(wanted.shown, "is held no longer")

    def _tell(self, wanted: Wanted, call: Callable[[LockLost], None]) -> None:
        with self._mutex:
            self._losers.setdefault(wanted.id, []).append(call)

    def _end(self, names: Sequence[str], why: str) -> None:
        with self._mutex:
            ended = {id_ for name in names for id_ in self._holders.pop(name, {})}
            losers = [call for id_ in ended for call in self._losers.pop(id_, ())]
            wakes = list(self._wakes)
        for lose in losers:
            lose(_loss(", ".join(names), why))
        for wake in wakes:
            wake()


def _loss(shown: str, why: str) -> LockLost:
    return LockLost(f"the lock of {shown} is lost: it {why}. What you do next is not protected.", asset=shown)
