"""`lock` and `AsyncLock`: locks as context managers, and by `acquire` and `try_acquire`.

There is no way into a block without the lock: what can't be acquired raises. A lock object holds nothing itself,
so it may be shared by threads and tasks: each that enters it makes an acquisition of its own.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Literal, Self, TypeVar, cast

from assetlock.client.locking import acquiring, chain, configured, spans
from assetlock.client.locking.acquiring import Calls, Pursuit
from assetlock.client.locking.backend import Backend, Wanted
from assetlock.client.locking.errors import LockLost, LockTimeout
from assetlock.client.locking.held import AsyncHeld, Handle, Held
from assetlock.client.locking.spans import TTL, WAIT, Span

OnLost = Literal["cancel", "raise_at_exit"] | Callable[[LockLost], object]
H = TypeVar("H", bound=Handle)


@dataclass(frozen=True, slots=True)
class Terms:
    """How to lock: everything but what. Times are in seconds."""

    ttl: float = TTL
    wait: float = WAIT
    max_locks: int | None = None
    on_lost: OnLost = "cancel"
    reentrant: bool = False
    reason: str | None = None
    backend: Backend | None = None
    made: bool = False
    given: frozenset[str] = frozenset()
    """Which of ttl and wait the program has chosen itself."""

    limit: float = math.inf
    """A moment of `clock.now` beyond which it is not renewed."""

    def __post_init__(self) -> None:
        if self.max_locks is not None and not 1 <= self.max_locks <= 1000:
            raise ValueError(f"max_locks is a number from 1 to 1000, not {self.max_locks!r}")
        if self.on_lost not in ("cancel", "raise_at_exit") and not callable(self.on_lost):
            raise ValueError(f"on_lost is 'cancel', 'raise_at_exit' or a function, not {self.on_lost!r}")


class _Lock(Generic[H]):
    def __init__(
        self,
        *names: str,
        ttl: Span = TTL,
        wait: Span = WAIT,
        max_locks: int | None = None,
        on_lost: OnLost = "cancel",
        reentrant: bool = False,
        reason: str | None = None,
        backend: Backend | None = None,
    ) -> None:
        self._names = _checked(names)
        self._terms = Terms(
            spans.ttl_seconds(ttl),
            spans.seconds(wait, "wait"),
            max_locks,
            on_lost,
            reentrant,
            reason,
            backend,
        )
        # Blocks that are left in another context than they were entered in, as pytest's fixtures are.
        self._entered: list[H] = []

    @classmethod
    def _of(cls, names: tuple[str, ...], terms: Terms) -> Self:
        made = cls.__new__(cls)
        made._names, made._terms, made._entered = _checked(names), terms, []
        return made

    def _backend(self) -> Backend:
        return self._terms.backend or configured.backend()

    def _holders(self) -> dict[str, list[str]]:
        return {name: self._backend().holders(name) for name in self._names}

    def _pursuit(self, wait: Span | None) -> Pursuit | H:
        """What has to be done to get it, or the handle of a lock that this code has already."""
        backend, terms = self._backend(), self._terms
        if (already := chain.already(backend, self._names, terms.reentrant)) is not None:
            already._uses += 1
            return cast(H, already)
        wanted = Wanted(
            uuid.uuid4().hex, self._names, terms.ttl, terms.max_locks, terms.made, terms.reason, chain.root()
        )
        seconds = terms.wait if wait is None else spans.seconds(wait, "wait")
        return Pursuit(backend, wanted, seconds, terms.limit)

    def _enter(self, entered: H) -> H:
        chain.push(self, entered)
        self._entered.append(entered)
        return entered

    def _left(self) -> H:
        entered = cast("H | None", chain.innermost(self))
        if entered is None:
            return self._entered.pop()
        chain.pop(self, entered)
        self._entered.remove(entered)
        return entered


class Lock(_Lock[Held]):
    """A lock over names, all or nothing, for threads.

    ``ttl``: how long it lasts unless it is renewed, which happens by itself while it is held. ``wait``: how long
    to wait for it. ``max_locks``: how many may hold it at once. ``on_lost``: called if it is lost; otherwise
    `Held.check` and the end of the block raise `LockLost`.
    """

    def acquire(self, wait: Span | None = None) -> Held:
        """Wait for it, and give the handle.

        Raises `LockTimeout`, `LockDenied`, `BackendUnavailable` and `AlreadyHeld`.
        """
        pursuit = self._pursuit(wait)
        if isinstance(pursuit, Held):
            return pursuit
        term = acquiring.acquire(pursuit)
        if callable(self._terms.on_lost):
            term.when_lost(_in_thread(self._terms.on_lost))
        return Held(term)

    def try_acquire(self) -> Held | None:
        """The handle, or None if others hold it now."""
        try:
            return self.acquire(wait=0)
        except LockTimeout:
            return None

    def holders(self) -> dict[str, list[str]]:
        """Who holds each name, as text."""
        return self._holders()

    def __enter__(self) -> Held:
        return self._enter(self.acquire())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left().__exit__(kind, error, trace)


class AsyncLock(_Lock[AsyncHeld]):
    """A lock over names, all or nothing, for coroutines.

    As `Lock`, but for ``on_lost``: with ``cancel`` the task that entered the block is cancelled when the lock is
    lost, and the block ends with `LockLost`.
    """

    async def acquire(self, wait: Span | None = None) -> AsyncHeld:
        """Wait for it, and give the handle.

        Raises `LockTimeout`, `LockDenied`, `BackendUnavailable` and `AlreadyHeld`.
        """
        if self._terms.backend is None and not configured.is_chosen():
            await Calls().make(configured.backend)  # may read files, or ask a plugin for a credential
        pursuit = self._pursuit(wait)
        if isinstance(pursuit, AsyncHeld):
            return pursuit
        term = await acquiring.acquire_async(pursuit)
        if callable(self._terms.on_lost):
            term.when_lost(_in_thread(self._terms.on_lost))
        return AsyncHeld(term, cancels=self._terms.on_lost == "cancel")

    async def try_acquire(self) -> AsyncHeld | None:
        """The handle, or None if others hold it now."""
        try:
            return await self.acquire(wait=0)
        except LockTimeout:
            return None

    async def holders(self) -> dict[str, list[str]]:
        """Who holds each name, as text."""
        return await Calls().make(self._holders)

    async def __aenter__(self) -> AsyncHeld:
        return self._enter(await (await self.acquire()).__aenter__())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._left().__aexit__(kind, error, trace)


def lock(
    *names: str,
    ttl: Span = TTL,
    wait: Span = WAIT,
    max_locks: int | None = None,
    on_lost: OnLost = "cancel",
    reentrant: bool = False,
    reason: str | None = None,
    backend: Backend | None = None,
) -> Lock:
    """A `Lock` over these names: ``with lock("vm-1", ttl="5m") as held: …``."""
    return Lock(
        *names,
        ttl=ttl,
        wait=wait,
        max_locks=max_locks,
        on_lost=on_lost,
        reentrant=reentrant,
        reason=reason,
        backend=backend,
    )


def _checked(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("name what to lock")
    for name in names:
        if not isinstance(name, str) or not name or len(name) > 253 or not name.isprintable():
            raise ValueError(f"{name!r} is no name of something to lock")
    return tuple(sorted(set(names)))


def _in_thread(call: Callable[[LockLost], object]) -> Callable[[LockLost], None]:
    """The caller's own code must not hold up the renewer."""

    def run(loss: LockLost) -> None:
        threading.Thread(target=call, args=(loss,), name="assetlock-on-lost", daemon=True).start()

    return run
