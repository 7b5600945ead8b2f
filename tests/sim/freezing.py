"""Stops a process as SIGSTOP does: nothing of it runs, what it had sent goes on; when it wakes, overdue timers fire.

Whose a callback is, its context tells: everything that is begun by code behind a gate is behind that gate too.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from assetlock.kube.transport import Reply, Transport

_GATE: contextvars.ContextVar["Gate | None"] = contextvars.ContextVar("gate", default=None)


class Gate:
    """What stands between a process and the processor. `install` must have been called for the loop."""

    def __init__(self) -> None:
        self.closed = False
        self._held: list[asyncio.Handle] = []

    def enter(self) -> None:
        """Have the running task, and all that it begins from now on, stopped and woken by this gate."""
        _GATE.set(self)

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep a callback until the gate opens."""
        self._held.append(handle)

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        """Stop the process, and wake it up afterwards: what piled up runs then, in order.

        Also when the schedule is over: what is never woken is never cancelled either, and would go on in another.
        """
        self.closed = True
        try:
            yield
        finally:
            self.closed = False
            held, self._held = self._held, []
            for handle in held:
                asyncio.get_running_loop().call_soon(_run_unless_cancelled, handle)


def _run_unless_cancelled(handle: asyncio.Handle) -> None:
    if not handle.cancelled():
        handle._run()


def install(loop: Any) -> None:
    """Make a loop look at the gates."""
    call_soon: Callable[..., asyncio.Handle] = loop._call_soon
    call_at: Callable[..., asyncio.TimerHandle] = loop.call_at

    def gated_soon(
        callback: Callable[..., object], args: Any, context: contextvars.Context | None
    ) -> asyncio.Handle:
        gate = context.get(_GATE) if context is not None else _GATE.get()
        if gate is None or not gate.closed:
            return call_soon(callback, args, context)
        handle = asyncio.Handle(callback, args, loop, context or contextvars.copy_context())
        gate.hold(handle)
        return handle

    def gated_at(
        when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        gate = context.get(_GATE) if context is not None else _GATE.get()
        if gate is None:
            return call_at(when, callback, *args, context=context)
        timer: asyncio.TimerHandle

        def fire() -> None:
            if not timer.cancelled():
                callback(*args)

        def due() -> None:
            if gate.closed:
                gate.hold(asyncio.Handle(fire, (), loop, contextvars.copy_context()))
            else:
                callback(*args)

        timer = call_at(when, due, context=context)
        return timer

    loop._call_soon, loop.call_at = gated_soon, gated_at


class Detached:
    """A transport whose requests go on while the process that sent them is stopped."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
    ) -> Reply:
        """Send a request, once."""
        sent = self._transport.request(
            method, path, params=params, headers=headers, body=body, timeout=timeout
        )
        return await asyncio.get_running_loop().create_task(sent, context=contextvars.Context())

    def stream(
        self, path: str, *, params: Mapping[str, str], headers: Mapping[str, str], idle_timeout: float
    ) -> AsyncIterator[bytes]:
        """Open a stream: it is read by the process itself, and hence not while it is stopped."""
        return self._transport.stream(path, params=params, headers=headers, idle_timeout=idle_timeout)

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()
