"""How the lines of a watch travel: in order, after some latency, until the stream ends, breaks or falls silent."""

import asyncio
import collections
from collections.abc import AsyncIterator, Callable

from assetlock.kube.transport import TransportError
from tests.sim.faults import Drawn, WatchTrouble
from tests.sim.watch import Feed

_TICK = 1e-6


class Wire:
    """One open watch. Iterating yields its lines; the end, or a `TransportError`, comes as on a real connection."""

    def __init__(
        self,
        feed: Feed,
        fault: Drawn | None,
        crashed: "asyncio.Future[None]",
        latency: Callable[[], float],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._feed = feed
        self._latency = latency
        self._lag = fault.delay if fault and fault.kind == WatchTrouble.LATE else 0.0
        self._arrived: collections.deque[bytes | TransportError | None] = collections.deque()
        self._awaited: asyncio.Future[None] | None = None
        self._patience_ends = 0.0
        self._last_arrival = 0.0
        self._crashed = crashed
        feed.open(self._send)
        self._plan_end(fault)
        crashed.add_done_callback(self._on_crash)

    async def read(self, idle_timeout: float) -> AsyncIterator[bytes]:
        """The lines as they arrive."""
        self._check_patience(idle_timeout)
        try:
            while True:
                self._patience_ends = self._loop.time() + idle_timeout
                if not self._arrived:
                    self._awaited = self._loop.create_future()
                    await self._awaited
                item = self._arrived.popleft()
                if isinstance(item, TransportError):
                    raise item
                if item is None:
                    return
                yield item
        finally:
            self._patience.cancel()
            self._feed.close()
            self._crashed.remove_done_callback(self._on_crash)

    def _check_patience(self, idle_timeout: float) -> None:
        """Whoever reads is told that nothing arrived for so long; until then it is looked at again."""
        waiting = self._awaited is not None and not self._awaited.done()
        now = self._loop.time()
        if waiting and now >= self._patience_ends:
            self._arrive(TransportError(f"nothing arrived for {idle_timeout}s"))
        again = self._patience_ends if self._patience_ends > now else now + idle_timeout
        self._patience = self._loop.call_at(again, self._check_patience, idle_timeout)

    def _send(self, item: bytes | None) -> None:
        arrival = self._loop.time() + self._latency() + self._lag
        self._last_arrival = max(self._last_arrival + _TICK, arrival)
        self._loop.call_at(self._last_arrival, self._arrive, item)

    def _arrive(self, item: bytes | TransportError | None) -> None:
        self._arrived.append(item)
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def _plan_end(self, fault: Drawn | None) -> None:
        kind, delay = (fault.kind, fault.delay) if fault else ("", 0.0)
        if kind == WatchTrouble.DROPPED:
            self._loop.call_later(delay, self._arrive, TransportError("connection reset"))
        elif kind == WatchTrouble.CLOSED:
            self._loop.call_later(delay, self._arrive, None)
        elif kind == WatchTrouble.SILENT:
            self._loop.call_later(delay, self._feed.close)

    def _on_crash(self, _crashed: "asyncio.Future[None]") -> None:
        self._arrive(TransportError("this process has crashed"))
