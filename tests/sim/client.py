"""The `Transport` of one simulated client: a user, a network with its faults, and a process that may crash.

What was sent keeps going at the server whatever becomes of the sender: a request whose client gave up, was cancelled
or crashed may still be executed, at once or late, as over a real connection.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from assetlock.kube.transport import Reply, StreamRefused, TransportError, Unreachable
from tests.sim import eager, failures, watch
from tests.sim.admission import ADMIN, User
from tests.sim.faults import Faults, Trouble, WatchTrouble
from tests.sim.server import Request, Server
from tests.sim.wire import Wire


class Client:
    """Fits `assetlock.kube.transport.Transport`."""

    def __init__(self, server: Server, user: User = ADMIN, faults: Faults | None = None) -> None:
        self.user = user
        self.faults = faults or Faults()
        self.requests = 0
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._crashed: asyncio.Future[None] = self._loop.create_future()
        self._awaited: dict[asyncio.Future[Reply], None] = {}
        self._executing: set[asyncio.Task[None]] = set()

    def crash(self) -> None:
        """From now on nothing is sent and nothing arrives any more."""
        if not self._crashed.done():
            self._crashed.set_result(None)
        for answer in self._awaited:
            _break(answer, "this process has crashed")

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
        answer: asyncio.Future[Reply] = self._loop.create_future()
        self._awaited[answer] = None
        patience = self._loop.call_later(timeout, _break, answer, f"no answer within {timeout}s")
        self._send(Request(self.user, method, path, params, headers, body), answer)
        try:
            return await answer
        finally:
            patience.cancel()
            del self._awaited[answer]

    def _check_alive(self) -> None:
        if self.crashed:
            raise TransportError("this process has crashed")

    def _send(self, request: Request, answer: "asyncio.Future[Reply]") -> None:
        fault = self.faults.for_request()
        kind, delay = (fault.kind, fault.delay) if fault else ("", 0.0)
        if kind == Trouble.UNREACHABLE:
            answer.set_exception(Unreachable("connection refused"))
        elif kind != Trouble.LOST_REQUEST:
            under_way = self.faults.latency() + (delay if kind == Trouble.LATE_REQUEST else 0)
            self._loop.call_later(under_way, self._arrive, request, answer, kind, delay)

    def _arrive(self, request: Request, answer: "asyncio.Future[Reply]", kind: str, delay: float) -> None:
        refusal = _refused(kind, request)
        if refusal is not None:
            self._answer(answer, _failed(refusal), 0)
            return
        executing = eager.start(self._execute(request, answer, kind, delay), name=request.path)
        if executing is not None:
            self._executing.add(executing)
            executing.add_done_callback(self._executing.discard)

    async def _execute(
        self, request: Request, answer: "asyncio.Future[Reply]", kind: str, delay: float
    ) -> None:
        reply = await self._server.handle(request)
        if kind == Trouble.LOST_REPLY:
            _break(answer, "connection reset")
        elif kind == Trouble.ERROR_AFTER:
            late = "Timeout: request did not complete within the allotted timeout"
            self._answer(answer, _failed(failures.Refusal(504, "Timeout", late)), 0)
        else:
            self._answer(answer, reply, delay if kind == Trouble.LATE_REPLY else 0)

    def _answer(self, answer: "asyncio.Future[Reply]", reply: Reply, delay: float) -> None:
        self._loop.call_later(self.faults.latency() + self.faults.drag + delay, _resolve, answer, reply)

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
                raise failures.too_many_requests()
            feed = self._server.open_watch(request)
        except failures.Refusal as refusal:
            raise StreamRefused(_failed(refusal)) from refusal
        if fault is not None and fault.kind == WatchTrouble.EXPIRED:
            yield watch.failure(failures.too_old(1, self._server.store.revision))
            return
        wire = Wire(feed, fault, self._crashed, self.faults.latency)
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


def _failed(refusal: failures.Refusal) -> Reply:
    return Reply(refusal.code, refusal.headers(), refusal.body())


def _resolve(answer: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not answer.done():
        answer.set_result(reply)


def _break(answer: "asyncio.Future[Reply]", why: str) -> None:
    if not answer.done():
        answer.set_exception(TransportError(why))
