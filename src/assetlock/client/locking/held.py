"""A lock that is held: what its holder can ask and do. Handles may go to other threads and tasks, not into a fork."""

from __future__ import annotations

import asyncio
import datetime
import logging
import threading
import weakref
from types import TracebackType

from assetlock.client import clock
from assetlock.client.locking import acquiring, process, spans
from assetlock.client.locking.acquiring import Calls
from assetlock.client.locking.backend import Renewed
from assetlock.client.locking.body import Body
from assetlock.client.locking.errors import LockLost
from assetlock.client.locking.spans import Span
from assetlock.client.locking.term import Term

log = logging.getLogger("assetlock")

EXTEND_TIMEOUT = 10.0


class Handle:
    """What `Held` and `AsyncHeld` have in common."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._uses = 1
        # A handle that is dropped without being released must not be renewed for ever.
        self._dropped = weakref.finalize(self, _dropped, term)
        self._dropped.atexit = False

    @property
    def names(self) -> tuple[str, ...]:
        """What is locked."""
        return self._term.grant.wanted.names

    @property
    def id(self) -> str:
        """The id of this acquisition."""
        return self._term.grant.wanted.id

    @property
    def token(self) -> int:
        """The fencing token: larger than that of every holder before. For several names see `tokens`."""
        if len(self.names) != 1:
            raise ValueError(f"{', '.join(self.names)} have a token each: use tokens")
        return self.tokens[self.names[0]]

    @property
    def tokens(self) -> dict[str, int]:
        """The fencing token of each name."""
        return dict(self._term.grant.tokens)

    @property
    def until(self) -> datetime.datetime:
        """Until when it may be relied on, unless it is renewed, by this machine's clock."""
        return acquiring.until(self._term)

    @property
    def lost(self) -> threading.Event:
        """Set when the lock is lost."""
        return self._term.lost

    def check(self) -> None:
        """Raise `LockLost` unless the lock may be relied on now. Asks nobody, so call it as often as you like."""
        term = self._term
        if term.pid != process.current().pid:
            raise term.as_loss("belongs to the process that forked this one")
        if term.loss is not None:
            raise term.loss
        if term.ended:
            raise term.as_loss("was released")
        if clock.now() >= term.deadline:
            raise term.out_of_time()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self.names)} until {self.until:%H:%M:%S}>"

    def _extend(self, ttl: Span) -> None:
        self.check()
        term, wanted = self._term, spans.ttl_seconds(ttl)
        with term.calling:
            term.ttl = wanted
            asked = clock.now()
            [answer] = term.backend.renew([(term.grant, term.next_ttl())], EXTEND_TIMEOUT)
            if isinstance(answer, LockLost):
                term.lose(answer)
            if not isinstance(answer, Renewed):
                raise answer
            term.confirm(asked, answer.ttl)
        process.current().renewer.add(term)

    def _is_current(self) -> bool:
        term = self._term
        if term.pid != process.current().pid or term.ended or term.loss is not None:
            return False
        return term.backend.is_current(term.grant)

    def _leaves(self) -> bool:
        """One use less; whether it was the last."""
        self._uses -= 1
        if self._uses > 0 or self._term.ended:
            return False
        self._dropped.detach()
        return True


class Held(Handle):
    """A lock that is held. Leaving its ``with`` block, or `release`, gives it back."""

    @classmethod
    def seen(cls, term: Term) -> Held:
        """A handle beside the one that is responsible for releasing it."""
        held = cls(term)
        held._dropped.detach()
        return held

    def extend(self, ttl: Span) -> None:
        """Let it last so long from now on, and be renewed to that from now on. `LockLost` if it is over."""
        self._extend(ttl)

    def is_current(self) -> bool:
        """Ask the backend whether it is held still. Raises `BackendUnavailable`."""
        return self._is_current()

    def release(self) -> None:
        """Give it back. `LockLost` if it was lost before; nothing happens if it was released before."""
        if self._leaves() and (loss := acquiring.release(self._term)) is not None:
            raise loss

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except LockLost as loss:
            _tell(error, loss)


class AsyncHeld(Handle):
    """A lock that a coroutine holds. Leaving its ``async with`` block, or `release`, gives it back.

    With ``cancels`` the task that enters the block is cancelled when the lock is lost.
    """

    def __init__(self, term: Term, *, cancels: bool = True) -> None:
        super().__init__(term)
        self._cancels = cancels
        self._body: Body | None = None

    async def extend(self, ttl: Span) -> None:
        """Let it last so long from now on, and be renewed to that from now on. `LockLost` if it is over."""
        await Calls().make(lambda: self._extend(ttl))

    async def is_current(self) -> bool:
        """Ask the backend whether it is held still. Raises `BackendUnavailable`."""
        return await Calls().make(self._is_current)

    async def release(self) -> None:
        """Give it back, also if this is cancelled. `LockLost` if it was lost before."""
        if self._leaves() and (loss := await _release(self._term)) is not None:
            raise loss

    async def __aenter__(self) -> AsyncHeld:
        if self._cancels and self._body is None:
            self._body = Body(self._term)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._uses == 1 and self._body is not None and self._body.leave(error):
            error = None
        try:
            await self.release()
        except LockLost as loss:
            _tell(error, loss)


async def _release(term: Term) -> LockLost | None:
    """Release in another thread; a cancellation waits for that a while, and it happens in any case."""
    calls = Calls()
    try:
        return await calls.make(lambda: acquiring.release(term))
    except asyncio.CancelledError:
        await calls.shielded(lambda: None)
        raise


def _tell(error: BaseException | None, loss: LockLost) -> None:
    if error is None:
        raise loss
    last, seen = error, {id(loss)}
    while id(last) not in seen and last.__context__ is not None:
        seen.add(id(last))
        last = last.__context__
    if id(last) not in seen:
        last.__context__ = loss
    if error is not loss:
        error.add_note(f"Meanwhile: {loss}")


def _dropped(term: Term) -> None:
    """The handle is gone, so nobody can release it any more."""
    if not term.ended and term.pid == process.current().pid:
        log.warning("the handle of %s was dropped without being released", term.grant.wanted.shown)
        what = f"releasing {term.grant.wanted.shown}"
        process.current().chores.add(what, term.backend, lambda: acquiring.release(term), term.ttl)
