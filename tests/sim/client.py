"""The `Transport` of one simulated client: a user, a network with its faults, and a process that may crash.

What was sent keeps going at the server whatever becomes of the sender: a request whose client gave up, was cancelled
or crashed may still be executed, at once or late, as over a real connection.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from assetlock.kube.transport import Reply, StreamRefused, TransportError, Unreachable
from tests.sim import failures, watch
from tests.sim.admission import ADMIN, User
from tests.sim.faults import Drawn, Faults, Trouble, WatchTrouble
from tests.sim.server import Request, Server
from tests.sim.wire import Wire


class Client:
    """Fits `assetlock.kube.transport.Transport`."""

    def __init__(self, server: Server, user: User = ADMIN, faults: Faults | None = None) -> None:
        self.user = user
        self.faults = faults or Faults()
        self.requests = 0
        self._server = server
        self._crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def crash(self) -> None:
        """From now on nothing is sent and nothing arrives any more."""
        if not self._crashed.done():
            self._crashed.set_result(None)

    @property
    def crashed(self) -> bool:
        """Whether `crash` was called."""
        return self._crashed.done()

    async def close(self) -> None:
        """Nothing is open."""

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
        self._check_alive()
        self.requests += 1
        fault = self.faults.for_request()
        kind = fault.kind if fault else ""
        if kind == Trouble.UNREACHABLE:
            raise Unreachable("connection refused")
        if kind == Trouble.LOST_REQUEST:
            return await self._await_reply(asyncio.get_running_loop().create_future(), timeout)
        request = Request(self.user, method, path, params, headers, body)
        answer = asyncio.create_task(self._exchange(request, fault), name=f"{method} {path}")
        return await self._await_reply(answer, timeout)

    async def _await_reply(self, answer: "asyncio.Future[Reply | None]", timeout: float) -> Reply:
        await asyncio.wait((answer, self._crashed), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        self._check_alive()
        if not answer.done():
            raise TransportError(f"no answer within {timeout}s")
        reply = answer.result()
        if reply is None:
            raise TransportError("connection reset")
        return reply

    def _check_alive(self) -> None:
        if self._crashed.done():
            raise TransportError("this process has crashed")

    async def _exchange(self, request: Request, fault: Drawn | None) -> Reply | None:
        kind, delay = (fault.kind, fault.delay) if fault else ("", 0.0)
        await asyncio.sleep(self.faults.latency() + (delay if kind == Trouble.LATE_REQUEST else 0))
        refusal = _refused(kind, request)
        if refusal is not None:
            return Reply(refusal.code, refusal.headers(), refusal.body())
        reply = await self._server.handle(request)
        await asyncio.sleep(self.faults.latency() + (delay if kind == Trouble.LATE_REPLY else 0))
        if kind == Trouble.LOST_REPLY:
            return None
        if kind == Trouble.ERROR_AFTER:
            late = failures.Refusal(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
            return Reply(late.code, late.headers(), late.body())
        return reply

    async def stream(
        self, path: str, *, params: Mapping[str, str], headers: Mapping[str, str], idle_timeout: float
    ) -> AsyncIterator[bytes]:
        """Open a stream and yield its lines."""
        self._check_alive()
        self.requests += 1
        fault = self.faults.for_watch()
        await asyncio.sleep(self.faults.latency())
        self._check_alive()
        request = Request(self.user, "GET", path, params, headers)
        try:
            if fault is not None and fault.kind == WatchTrouble.REFUSED:
                raise failures.too_many_requests() if fault.delay < 10 else failures.internal_error("no watch")
            lines = self._server.open_watch(request)
        except failures.Refusal as refusal:
            raise StreamRefused(Reply(refusal.code, refusal.headers(), refusal.body())) from refusal
        if fault is not None and fault.kind == WatchTrouble.EXPIRED:
            yield watch.failure(failures.too_old(1, self._server.store.revision))
            return
        wire = Wire(lines, fault, self._crashed, self.faults.latency)
        async for line in wire.read(idle_timeout):
            yield line


def _refused(kind: str, request: Request) -> failures.Refusal | None:
    match kind:
        case Trouble.THROTTLED:
            return failures.too_many_requests()
        case Trouble.ERROR:
            return failures.internal_error("the server is unwell")
        case Trouble.EXPIRED_PAGE if "continue" in request.params:
            return failures.expired("The provided continue parameter is too old")
    return None
