"""The admission process: TLS, the webhooks, and what they need running behind them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pathlib
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn

from aiohttp import web

from assetlock.admission.access import Access
from assetlock.admission.app import application
from assetlock.admission.asset_cache import AssetCache
from assetlock.admission.ended_stamps import EndedStamps
from assetlock.admission.settings import AdmissionSettings
from assetlock.admission.upkeep.activity import ActivityRecorder
from assetlock.admission.upkeep.callers import Callers
from assetlock.admission.upkeep.creation_rules import CreationRules
from assetlock.admission.upkeep.evidence import MadeWrites
from assetlock.admission.upkeep.tls import GivenFiles, ServingContext, SharedSecret, Source
from assetlock.admission.webhooks import Webhooks
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.errors import KubeError
from assetlock.kube.http import HttpTransport
from assetlock.kube.recorder import EventRecorder

FIRST_PAUSE = 1.0
GRACE = 5.0

log = logging.getLogger(__name__)


async def run(
    kubeconfig: pathlib.Path | None, host: str, port: int, settings: AdmissionSettings | None = None
) -> None:
    """Serve the webhooks until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    api = Api(HttpTransport(load_config(kubeconfig)))
    try:
        async with serving(api, host, port, settings or AdmissionSettings()):
            await stop.wait()
    finally:
        await api.close()


@contextlib.asynccontextmanager
async def serving(api: Api, host: str, port: int, settings: AdmissionSettings) -> AsyncIterator[int]:
    """Serve the webhooks inside the context; gives the port."""
    view = AssetCache(api)
    activity = ActivityRecorder(api, expires=view.expires)
    events = EventRecorder(api, f"assetlock-admission-{socket.gethostname()}-{os.getpid()}")
    made, ended = MadeWrites(api), EndedStamps(api)
    webhooks = Webhooks(settings, view, Access(api), activity, made, ended, events)
    certificate = ServingContext(_source(api, settings))
    callers = Callers(api, namespace=settings.namespace)
    await _once(certificate.refresh, "no serving certificate yet")
    await _once(callers.refresh, "the path of the webhooks is not known yet")
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_kept_up(name, upkeep), name=name)
            for name, upkeep in (
                ("assets", view.reflector.run),
                ("activity", activity.run),
                ("made writes", made.run),
                ("ended stamps", ended.reflector.run),
                ("events", events.run),
                ("certificate", certificate.run),
                ("callers", callers.run),
                ("creation rules", CreationRules(api, view).run),
            )
        ]
        try:
            async with _listening(
                application(webhooks, callers.are_admitted), certificate, host, port, settings.drain_seconds
            ) as bound:
                log.info("serving webhooks", extra={"host": host, "port": bound})
                yield bound
        finally:
            for task in running:
                task.cancel()


@contextlib.asynccontextmanager
async def _listening(
    app: web.Application, certificate: ServingContext, host: str, port: int, drain: float
) -> AsyncIterator[int]:
    draining = asyncio.Event()

    async def close_when_draining(_: web.Request, response: web.StreamResponse) -> None:
        if draining.is_set():
            response.force_close()

    app.on_response_prepare.append(close_when_draining)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=certificate.context).start()
        yield runner.addresses[0][1]
    finally:
        # The API server keeps connections, and a request that meets a closing one is lost.
        draining.set()
        await asyncio.sleep(drain)
        await runner.cleanup()


async def _kept_up(name: str, upkeep: Callable[[], Awaitable[object]]) -> NoReturn:
    """Begin it again whenever it fails: the webhooks answer without it, and it may be one odd object alone."""
    while True:
        try:
            await upkeep()
        except Exception:
            log.exception("%s: failed, beginning again in %.0f s", name, FIRST_PAUSE)
        await asyncio.sleep(FIRST_PAUSE)


async def _once(refresh: Callable[[], Awaitable[object]], otherwise: str) -> None:
    """Wait for what there is nothing to listen with, or nobody to listen to, without."""
    while True:
        try:
            await refresh()
        except (KubeError, OSError, ValueError) as error:
            log.warning("%s: %s", otherwise, error)
            await asyncio.sleep(FIRST_PAUSE)
        else:
            return


def _source(api: Api, settings: AdmissionSettings) -> Source:
    if settings.tls_cert_file is not None and settings.tls_key_file is not None:
        return GivenFiles(settings.tls_cert_file, settings.tls_key_file)
    return SharedSecret(api, settings.certificate_names, namespace=settings.namespace)
