"""The HTTP process: uvicorn, the application, and the watch behind its lists."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import signal
import time
from collections.abc import Generator

import uvicorn

from assetlock.kube.api import Api
from assetlock.kube.buckets import TokenBuckets
from assetlock.kube.config import load_config
from assetlock.kube.credentials import Fixed
from assetlock.kube.http import HttpTransport
from assetlock.kube.tls import Tls
from assetlock.web.app import application
from assetlock.web.cache import AssetIndex
from assetlock.web.callers import Callers
from assetlock.web.context import Context
from assetlock.web.settings import HttpSettings

GRACE = 5
"""Seconds that requests have to end after SIGTERM; then they are cut. A lock that is waited for keeps its place."""

IDLE = 75
"""Seconds for which an idle connection is kept: longer than load balancers do, so that they close it first."""


async def run(
    kubeconfig: pathlib.Path | None, host: str, port: int, settings: HttpSettings | None = None
) -> None:
    """Serve until SIGTERM or SIGINT."""
    settings = settings or HttpSettings()
    config = load_config(kubeconfig)
    own = HttpTransport(config)
    callers = HttpTransport(
        dataclasses.replace(config, credentials=Fixed(), tls=_trust(config.tls), headers=())
    )
    index = AssetIndex(Api(own))
    rate = TokenBuckets(burst=settings.burst, period=1 / settings.requests_per_second, clock=time.monotonic)
    context = Context(settings, Callers(callers, seconds=settings.rights_seconds, rate=rate), index)
    server = _server(context, host, port)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    watching = asyncio.create_task(index.reflector.run(), name="assets")
    try:
        await server.serve()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await own.close()
        await callers.close()


def _server(context: Context, host: str, port: int) -> _Server:
    settings = context.settings
    return _Server(
        uvicorn.Config(
            application(context),
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=settings.tls_cert_file,
            ssl_keyfile=settings.tls_key_file,
        )
    )


def _trust(tls: Tls) -> Tls:
    """Whom to trust, without a certificate of ours to show: these connections are the callers'."""
    return dataclasses.replace(
        tls, certificate_file=None, certificate_data=None, key_file=None, key_data=None
    )


class _Server(uvicorn.Server):
    """uvicorn, which would end the process by the signal itself, before the rest is closed."""

    def stop(self) -> None:
        """Take no more requests, and let those that run end."""
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield
