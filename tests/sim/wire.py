"""How the lines of a watch travel: in order, after some latency, until the stream ends, breaks or falls silent."""

import asyncio
from collections.abc import AsyncIterator, Callable

from assetlock.kube.transport import TransportError
from tests.sim.faults import Drawn, WatchTrouble

_TICK = 1e-6


class Wire:
    """One open watch. Iterating yields its lines; the end, or a `TransportError`, comes as on a real connection."""

    def __init__(
        self,
        lines: AsyncIterator[bytes],
        fault: Drawn | None,
        crashed: "asyncio.Future[None]",
        latency: Callable[[], float],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = lines
        self._latency = latency
        self._lag = fault.delay if fault and fault.kind == WatchTrouble.LATE else 0.0
        self._arrived: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._last_arrival = 0.0
        self._crashed = crashed
        self._pump = self._loop.create_task(self._carry(), name="watch")
        self._plan_end(fault)
        crashed.add_done_callback(self._on_crash)

    async def read(self, idle_timeout: float) -> AsyncIterator[bytes]:
        """The lines as they arrive."""
        try:
            while True:
                try:
                    async with asyncio.timeout(idle_timeout):
                        item = await self._arrived.get()
                except TimeoutError:
                    raise TransportError(f"nothing arrived for {idle_timeout}s") from None
                if isinstance(item, Exception):
                    raise item
                if item is None:
                    return
                yield item
        finally:
            self._pump.cancel()
            self._crashed.remove_done_callback(self._on_crash)

    async def _carry(self) -> None:
        async for line in self._lines:
            self._send(line)
        self._send(None)

    def _send(self, item: bytes | None) -> None:
        arrival = self._loop.time() + self._latency() + self._lag
        self._last_arrival = max(self._last_arrival + _TICK, arrival)
        self._loop.call_at(self._last_arrival, self._arrived.put_nowait, item)

    def _plan_end(self, fault: Drawn | None) -> None:
        kind, delay = (fault.kind, fault.delay) if fault else ("", 0.0)
        if kind == WatchTrouble.DROPPED:
            self._loop.call_later(delay, self._arrived.put_nowait, TransportError("connection reset"))
        elif kind == WatchTrouble.CLOSED:
            self._loop.call_later(delay, self._arrived.put_nowait, None)
        elif kind == WatchTrouble.SILENT:
            self._loop.call_later(delay, self._pump.cancel)

    def _on_crash(self, _crashed: "asyncio.Future[None]") -> None:
        self._arrived.put_nowait(TransportError("this process has crashed"))
