"""Stands between the controller and the API server, and answers some requests in its own way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import web

from assetlock.kube.config import load_config
from assetlock.kube.credentials import Credential
from assetlock.kube.tls import Tls, TlsContexts

Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request, or gives ``None`` to pass it on."""

_HOP_BY_HOP = ("transfer-encoding", "content-length", "connection", "content-encoding")


class Meddler:
    """Passes requests on, with plain HTTP before it; ``rules`` come first. Set them from the test's thread."""

    def __init__(self) -> None:
        self.rules: list[Answer] = []
        self.met = 0
        self.url = ""
        self._watches: set[asyncio.BaseTransport] = set()
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def serving(self, kubeconfig: object) -> Iterator[None]:
        """Serve in a thread, for as long as the block lasts."""
        ready, loop = threading.Event(), self._loop

        def run() -> None:
            loop.run_until_complete(self._start(kubeconfig))
            ready.set()
            loop.run_forever()
            loop.run_until_complete(self._stop())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)

    @contextmanager
    def meddling(self, *rules: Answer) -> Iterator[None]:
        """Apply these rules, for as long as the block lasts."""
        self.rules, self.met = [*rules], 0
        try:
            yield
        finally:
            self.rules = []

    def cut(self) -> None:
        """Break all watches."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for transport in self._watches:
            transport.abort()  # type: ignore[attr-defined]

    def once(self, matches: Callable[[web.Request], bool], answer: Answer) -> Answer:
        """Answer the first request that matches."""
        return self.always(lambda request: self.met == 0 and matches(request), answer)

    def always(self, matches: Callable[[web.Request], bool], answer: Answer) -> Answer:
        """Answer each request that matches."""

        async def rule(request: web.Request) -> web.StreamResponse | None:
            if not matches(request):
                return None
            self.met += 1
            return await answer(request)

        return rule

    async def _start(self, kubeconfig: object) -> None:
        config = load_config(kubeconfig)  # type: ignore[arg-type]
        self._server = config.server
        trusted = Tls(ca_data=config.tls.ca_data, ca_file=config.tls.ca_file)  # and no certificate of its own
        tls = TlsContexts(trusted).context_for(Credential())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls), auto_decompress=False
        )
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._session.close()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        for rule in self.rules:
            if (answer := await rule(request)) is not None:
                return answer
        transport = request.transport
        if transport is None or "watch" not in request.query:
            return await self._pass_on(request)
        self._watches.add(transport)
        try:
            return await self._pass_on(request)
        finally:
            self._watches.discard(transport)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", *_HOP_BY_HOP)}
        url = f"{self._server}{request.raw_path}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            request.method, url, data=body or None, headers=headers, timeout=timeout
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            passed = web.StreamResponse(status=answer.status, headers=kept)
            await passed.prepare(request)
            async for chunk in answer.content.iter_any():
                await passed.write(chunk)
            await passed.write_eof()
            return passed
