"""Servers that hold one thing back until they are told to let go, so that a race is forced and not hoped for.

`HoldingWebhook` is consulted after our own admission and before the commit. `HoldingProxy` stands in front of the
API server and holds a request on its way there. Each runs in a thread of its own, so tests may block.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import aiohttp
from aiohttp import web

from assetlock.dev import ControlPlane, pki

PATIENCE = 60.0
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Latch:
    """Something that arrives, waits, and is let go."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived = threading.Event()
        self._open = asyncio.Event()

    async def hold(self) -> None:
        """Called by what arrives."""
        self._arrived.set()
        await self._open.wait()

    def wait_for_arrival(self) -> None:
        """Return when something is held."""
        assert self._arrived.wait(PATIENCE), "nothing came that could be held"

    def let_go(self) -> None:
        """Let it go on its way."""
        self._loop.call_soon_threadsafe(self._open.set)


class HoldingWebhook:
    """Admits everything; the first review that is no dry run waits at the latch."""

    def __init__(self, latch: Latch) -> None:
        self.latch = latch
        self.is_consulted = False
        self.reviewed: list[dict[str, Any]] = []
        """The requests that were no dry runs."""
        self._has_held = False

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a review."""
        review = await request.json()
        self.is_consulted = True
        self.reviewed += [] if review["request"].get("dryRun") else [review["request"]]
        if not self._has_held and not review["request"].get("dryRun"):
            self._has_held = True
            await self.latch.hold()
        response = {"uid": review["request"]["uid"], "allowed": True}
        return web.json_response({**review, "request": None, "response": response})


Wanted = Callable[[str, str, bytes], bool]


class HoldingProxy:
    """Passes everything on; the first request that is `wanted`, by method, path and body, waits at the latch."""

    def __init__(self, cluster: ControlPlane, session: aiohttp.ClientSession) -> None:
        self._server = cluster.server
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._wanted: Wanted | None = None
        self._latch = Latch(self._loop)
        self._answered = threading.Event()
        self.status = 0
        """What was answered to the request that was held."""

    def hold(self, wanted: Wanted) -> Latch:
        """Hold the next such request."""
        self._latch, self._wanted = Latch(self._loop), wanted
        self._answered.clear()
        return self._latch

    def wait_for_answer(self) -> None:
        """Return when the API server has answered what was held."""
        assert self._answered.wait(PATIENCE), "what was let go was not answered"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on."""
        body = await request.read()
        wanted = self._wanted
        is_held = wanted is not None and wanted(request.method, request.path, body)
        if is_held:
            self._wanted = None
            await self._latch.hold()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        async with self._session.request(
            request.method, self._server + request.path_qs, headers=headers, data=body or None
        ) as reply:
            if is_held:
                self.status = reply.status
                self._answered.set()
            return await _passed_back(request, reply)


async def _passed_back(request: web.Request, reply: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = {k: v for k, v in reply.headers.items() if k.lower() not in _HOP_BY_HOP}
    response = web.StreamResponse(status=reply.status, headers=headers)
    with contextlib.suppress(ConnectionError, aiohttp.ClientError):
        await response.prepare(request)
        async for chunk in reply.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
    return response


@contextlib.contextmanager
def holding_webhook(cluster: ControlPlane) -> Iterator[tuple[HoldingWebhook, str]]:
    """A webhook server, and its URL."""
    loop = asyncio.new_event_loop()
    webhook = HoldingWebhook(Latch(loop))
    with _serving(loop, cluster, webhook.handle) as url:
        yield webhook, url


@contextlib.contextmanager
def holding_proxy(cluster: ControlPlane) -> Iterator[tuple[HoldingProxy, str]]:
    """A proxy, and its URL; its certificate is by the authority that kubeconfigs trust."""
    loop = asyncio.new_event_loop()

    async def made() -> HoldingProxy:
        trust = ssl.create_default_context(cafile=str(cluster.folder / "pki" / "ca.crt"))
        connector = aiohttp.TCPConnector(limit=0, ssl=trust)
        session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
        )
        session._retry_connection = False
        return HoldingProxy(cluster, session)

    proxy = loop.run_until_complete(made())
    with _serving(loop, cluster, proxy.handle) as url:
        yield proxy, url
    loop.run_until_complete(proxy._session.close())


@contextlib.contextmanager
def _serving(
    loop: asyncio.AbstractEventLoop,
    cluster: ControlPlane,
    handle: Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]],
) -> Iterator[str]:
    """Run a server in a thread for as long as the block lasts."""
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_certificate(cluster)).start()
        port: int = runner.addresses[0][1]
        return port

    port = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.run_until_complete(runner.cleanup())
        loop.run_until_complete(_cancelled(asyncio.all_tasks(loop)))


async def _cancelled(left: set[asyncio.Task[Any]]) -> None:
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _certificate(cluster: ControlPlane) -> ssl.SSLContext:
    folder, name = cluster.folder / "pki", "gate"
    pki.Authority.load(folder, "ca").server(name).save(folder, name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context
