"""An asyncio event loop in virtual time: nothing sleeps, no file descriptor is opened.

When no callback is ready the clock jumps to the next timer, so an hour of leases passes in milliseconds.
A run is a function of its code and seed alone: callbacks run in the order asyncio promises, and there is neither
input nor output nor thread to disturb it. What does vary between interpreters is the order of sets of strings;
a replay therefore wants `PYTHONHASHSEED` fixed, or code that does not walk sets.

A simulation that can never go on ends at once: `Deadlock` when nothing is ready and no timer is left, `Livelock`
when callbacks go on for ever without time passing, `TooLong` when the virtual time allowed is used up.
"""

import asyncio
import collections
import contextvars
import datetime
import heapq
import itertools
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

EPOCH = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
STEPS_WITHOUT_TIME = 100_000


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set: what is awaited can never happen."""


class Livelock(RuntimeError):
    """Callbacks keep running, yet time stands still."""


class TooLong(RuntimeError):
    """The simulation used up the virtual time it was allowed."""


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop itself. `limit` is the virtual time, in seconds, after which a run is given up.

    It keeps its own ready queue and heap of timers: asyncio's compare handles in Python, one by one.
    """

    def __init__(self, *, limit: float = float("inf")) -> None:
        super().__init__()
        self._upcoming: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serials = itertools.count()
        self._now = 0.0
        self._limit = limit
        self._idle_steps = 0
        self._failure: BaseException | None = None
        self.set_exception_handler(_fail_on_lost_exception)

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self._call_soon(callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._upcoming, (when, next(self._serials), timer))
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _call_soon(
        self, callback: Callable[..., object], args: Any, context: contextvars.Context | None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def _run_once(self) -> None:
        """One round, as asyncio makes them: what is ready now, or all that is due at the next moment."""
        ready: collections.deque[asyncio.Handle] = self._ready
        if ready or self._stopping:
            self._idle_steps += 1
            if self._idle_steps > STEPS_WITHOUT_TIME:
                raise Livelock(f"{STEPS_WITHOUT_TIME} steps at {self._now:.3f}s: {self._waiting()}")
        else:
            self._jump()
        upcoming = self._upcoming
        while upcoming and upcoming[0][0] <= self._now:
            timer = heapq.heappop(upcoming)[2]
            if not timer.cancelled():
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _jump(self) -> None:
        """Move the clock to the next timer that is still set."""
        upcoming = self._upcoming
        while upcoming and upcoming[0][2].cancelled():
            heapq.heappop(upcoming)
        if not upcoming:
            raise Deadlock(f"nothing ready and no timer at {self._now:.3f}s: {self._waiting()}")
        when = upcoming[0][0]
        if when > self._now:
            self._now, self._idle_steps = when, 0
        if self._now > self._limit:
            raise TooLong(f"not done after {self._limit}s: {self._waiting()}")

    def _timer_handle_cancelled(self, _timer: asyncio.TimerHandle) -> None:
        """It is dropped when its time comes."""

    def fail(self, error: BaseException) -> None:
        """End the run with this error, whoever caught or dropped it on the way."""
        if self._failure is None:
            self._failure = error
        self.stop()

    @property
    def failure(self) -> BaseException | None:
        """What `fail` was told first."""
        return self._failure

    def _waiting(self) -> str:
        return ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(self)))

    def _write_to_self(self) -> None:
        """Nobody has to be woken: there is one thread."""

    def run_in_executor(self, *_: Any) -> NoReturn:  # type: ignore[override]
        """Refuse threads, and with them name resolution and file access: they know no virtual time."""
        raise RuntimeError("a simulation has no threads")


def _fail_on_lost_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, VirtualLoop)
    loop.fail(context.get("exception") or RuntimeError(context["message"]))


def run(main: Callable[[], Coroutine[Any, Any, T]], *, limit: float = float("inf")) -> T:
    """Run `main()` to its end in virtual time, then cancel what is left over, as `asyncio.run` does.

    An exception that nobody awaited in a background task fails the run as well.
    """
    loop = VirtualLoop(limit=limit)
    task = loop.create_task(main(), name="main")
    try:
        task.add_done_callback(lambda _: loop.stop())
        loop.run_forever()
        if loop.failure is None:
            return task.result()
    finally:
        _cancel_all(loop)
        loop.close()
    raise loop.failure


def _cancel_all(loop: VirtualLoop) -> None:
    if loop.failure is None:
        loop.set_exception_handler(lambda _loop, _context: None)
    remaining = asyncio.all_tasks(loop)
    for task in remaining:
        task.cancel()
    for _ in range(1000):
        remaining = {task for task in remaining if not task.done()}
        if not remaining:
            break
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.run_until_complete(loop.shutdown_asyncgens())


class Clock:
    """One machine's clocks: a monotonic one that is right, and a wall clock that is off by `skew` seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, skew: float = 0.0) -> None:
        self._loop = loop
        self._started = loop.time()
        self.skew = skew

    def monotonic(self) -> float:
        """Seconds since this machine came up."""
        return self._loop.time() - self._started

    def now(self) -> datetime.datetime:
        """What this machine believes the time to be."""
        return EPOCH + datetime.timedelta(seconds=self._loop.time() + self.skew)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward (or back); time that passes is not touched."""
        self.skew += seconds
