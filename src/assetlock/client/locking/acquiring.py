"""How a lock is acquired and given back, by threads and by coroutines. Whoever goes away leaves nothing behind.

The id of an acquisition exists before the first call. Whatever ends the attempt early, be it a cancellation,
Ctrl-C or an error, `Backend.abandon` follows for that id, after a call that is still on its way; if the backend
does not answer then, `Chores` go on trying until the TTL has ended it anyway.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import datetime
import logging
import math
import random
import threading
from collections.abc import Callable
from typing import TypeVar

from assetlock.client import clock
from assetlock.client.locking import process
from assetlock.client.locking.backend import Backend, Grant, Refusal, Wanted
from assetlock.client.locking.errors import BackendUnavailable, LockError, LockLost, LockTimeout
from assetlock.client.locking.term import Term

log = logging.getLogger("assetlock")

T = TypeVar("T")

LONGEST_CLEANUP = 5.0
"""Seconds that a cancelled coroutine waits for its own cleaning up; it goes on in the background."""

LONGEST_PAUSE = 5.0
"""Seconds after which a waiter asks again, though nobody has woken it."""

SHORTEST_PAUSE = 0.05


class Pursuit:
    """One acquisition on its way."""

    def __init__(self, backend: Backend, wanted: Wanted, wait: float, limit: float = math.inf) -> None:
        self.backend = backend
        self.wanted = wanted
        self._limit = limit
        self._deadline = clock.now() + wait
        self._wait = wait
        self._asked = 0.0
        self._answered = False
        self._refusal = Refusal()
        self._trouble: BackendUnavailable | None = None
        self.leaves_something = False

    def attempt(self) -> Term | None:
        """Ask once; blocks for as long as a call takes. Gives nothing if it has to be waited for."""
        self.leaves_something = True
        self._asked = clock.now()
        try:
            answer = self.backend.attempt(self.wanted, max(self._deadline - self._asked, 0))
        except BackendUnavailable as error:
            self._trouble = error
            if not self._answered:
                raise
            return None
        self._answered, self._trouble = True, None
        if isinstance(answer, Grant):
            return Term(self.backend, answer, self._asked, self._limit)
        self._refusal = answer
        self.leaves_something = answer.queued
        return None

    def pause(self) -> float:
        """How many seconds to wait before asking again; LockTimeout if the time is over."""
        left = self._deadline - clock.now()
        if left <= 0:
            raise self._trouble or self._timed_out()
        known = self._refusal.seconds
        pause = LONGEST_PAUSE if known is None else min(known, LONGEST_PAUSE)
        # Those who wait for the same expiry do not all come at the same moment.
        return min(max(pause, SHORTEST_PAUSE) * random.uniform(1.0, 1.2), left)  # noqa: S311

    def _timed_out(self) -> LockTimeout:
        refusal, shown = self._refusal, self.wanted.shown
        by = f" by {', '.join(refusal.holders)}" if refusal.holders else ""
        until = f" until {refusal.until:%Y-%m-%dT%H:%M:%SZ}" if refusal.until else ""
        what = f"can't be locked: {refusal.why}" if refusal.why else f"is held{by}{until}"
        waited = f"you waited {self._wait:g} s for it; " if self._wait else ""
        return LockTimeout(
            f"{shown} {what}; {waited}ask again, with a longer wait",
            asset=shown,
            holders=refusal.holders,
            until=refusal.until,
            retry_after=refusal.seconds,
        )

    def clean_up(self) -> None:
        """Leave nothing, now or as soon as the backend answers."""
        if not self.leaves_something:
            return
        if self._trouble is not None:  # it would not answer now either
            self._clean_up_later()
            return
        try:
            self.backend.abandon(self.wanted)
        except LockError as error:
            log.warning("cleaning up after %s is tried again: %s", self.wanted.shown, error)
            self._clean_up_later()

    def _clean_up_later(self) -> None:
        what = f"cleaning up after {self.wanted.shown}"
        process.current().chores.add(
            what, self.backend, lambda: self.backend.abandon(self.wanted), self.wanted.ttl
        )


def acquire(pursuit: Pursuit) -> Term:
    """Wait for the lock, in this thread. Raises `LockError`."""
    try:
        term = pursuit.attempt()
        if term is None:
            pursuit.pause()
            term = _wait(pursuit)
    except BaseException:
        pursuit.clean_up()
        raise
    process.current().renewer.add(term)
    return term


def _wait(pursuit: Pursuit) -> Term:
    woken = threading.Event()
    stop = pursuit.backend.listen(pursuit.wanted, woken.set)
    try:
        while True:
            woken.clear()
            if (term := pursuit.attempt()) is not None:
                return term
            woken.wait(pursuit.pause())
    finally:
        stop()


async def acquire_async(pursuit: Pursuit) -> Term:
    """Wait for the lock without blocking the event loop, and without a thread while it waits."""
    calls = Calls()
    try:
        term = await calls.make(pursuit.attempt)
        if term is None:
            pursuit.pause()
            term = await _wait_async(pursuit, calls)
    except BaseException:
        await calls.shielded(pursuit.clean_up)
        raise
    process.current().renewer.add(term)
    return term


async def _wait_async(pursuit: Pursuit, calls: Calls) -> Term:
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(woken.set)

    stop = pursuit.backend.listen(pursuit.wanted, wake)
    try:
        while True:
            woken.clear()
            if (term := await calls.make(pursuit.attempt)) is not None:
                return term
            pause = pursuit.pause()  # a LockTimeout is a TimeoutError too
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await woken.wait()
    finally:
        stop()


class Calls:
    """The blocking calls of one coroutine, one after the other, also when it does not wait for them any more."""

    def __init__(self) -> None:
        self._last: concurrent.futures.Future[object] | None = None

    async def make(self, call: Callable[[], T]) -> T:
        """Make the call in another thread; it goes on if this is cancelled."""
        future = process.current().pool.submit(call)
        self._last = future  # type: ignore[assignment]
        return await asyncio.shield(asyncio.wrap_future(future))

    async def shielded(self, call: Callable[[], T]) -> None:
        """Make the call after the one that is on its way, and wait for it a while, though not if cancelled again."""
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        def run() -> None:
            try:
                call()
            except Exception:
                log.exception("cleaning up failed")
            finally:
                done.set_result(None)

        pool = process.current().pool
        if self._last is None:
            pool.submit(run)
        else:
            self._last.add_done_callback(lambda _: pool.submit(run))
        await asyncio.wait([asyncio.wrap_future(done)], timeout=LONGEST_CLEANUP)


def release(term: Term) -> LockLost | None:
    """Give it back, or see to it that it is; the loss, if it was no longer held."""
    process.current().renewer.remove(term)
    if term.pid != process.current().pid:
        return term.as_loss("belongs to the process that forked this one")
    loss = term.loss
    term.end()
    try:
        held = term.backend.release(term.grant)
    except LockError as error:
        what = f"releasing {term.grant.wanted.shown}"
        log.warning("%s is tried again: %s", what, error)
        process.current().chores.add(what, term.backend, lambda: term.backend.release(term.grant), term.ttl)
        return loss
    return loss if held or loss else term.as_loss("was no longer held when it was released")


def until(term: Term) -> datetime.datetime:
    """Until when the caller may rely on it, by this machine's clock."""
    ahead = min(max(term.deadline - clock.now(), 0), 3e9)
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=ahead)
