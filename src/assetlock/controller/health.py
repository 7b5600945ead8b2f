"""What a kubelet, a load balancer and Prometheus ask the controller."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator

import prometheus_client
from aiohttp import web

from assetlock.controller.controller import Controller
from assetlock.controller.leadership import Elector
from assetlock.controller.settings import Settings

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def serve(settings: Settings, controller: Controller, elector: Elector) -> AsyncIterator[None]:
    """Serve ``/healthz`` (alive), ``/readyz`` (standing by, or leading with a whole cache) and ``/metrics``."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        if not elector.leading.is_set():
            return web.Response(text="standing by")
        if controller.fresh:
            return web.Response(text="leading")
        return web.Response(status=503, text="the cache is not whole, or too old")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=prometheus_client.generate_latest(), content_type="text/plain")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.health_host, settings.health_port)
        await site.start()
        log.info("serving health", extra={"addresses": [str(address) for address in runner.addresses]})
        yield
    finally:
        await runner.cleanup()
