"""The controller as a process: kopf watches and hands events over, one process leads, health is served.

kopf is used at the edge only: its ``on.event`` handlers cost no writes and no finalizers. What follows from an event
is decided by our own queue behind it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from typing import Any

import kopf

from assetlock.controller import health
from assetlock.controller.clock import SystemClock
from assetlock.controller.controller import Controller
from assetlock.controller.events import EventPublisher
from assetlock.controller.kopf_session import SessionFactory
from assetlock.controller.leadership import Elector
from assetlock.controller.settings import Settings
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.config import ClusterConfig
from assetlock.kube.http import HttpTransport
from assetlock.kube.recorder import EventRecorder
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES, MAINTENANCE_WINDOWS, Resource

INACTIVITY = 70.0

log = logging.getLogger(__name__)


async def run(config: ClusterConfig, settings: Settings) -> None:
    """Reconcile until a signal comes.

    Raises an ExceptionGroup with LeadershipLost in it when another process may lead by now.
    """
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    transport = HttpTransport(config)
    api = Api(transport)
    clock = SystemClock()
    recorder = EventRecorder(api, identity)
    controller = Controller(api, clock, settings.limits(), EventPublisher(recorder))
    elector = Elector(api, clock, identity, namespace=settings.namespace)
    try:
        async with health.serve(settings, controller, elector):
            telling = asyncio.create_task(recorder.run(), name="tell")
            leading = asyncio.create_task(_lead(controller, elector), name="lead")
            watching = asyncio.create_task(_watch(config, controller), name="watch")
            ended, _ = await asyncio.wait((leading, watching), return_when=asyncio.FIRST_COMPLETED)
            await _stop(leading, watching)
            await recorder.drain()
            await _stop(telling)
            await elector.release()
            for task in ended:
                task.result()
    finally:
        await transport.close()


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _lead(controller: Controller, elector: Elector) -> None:
    await elector.acquire()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(controller.run(), name="reconcile")
        tasks.create_task(elector.keep(), name="renew leadership")


async def _watch(config: ClusterConfig, controller: Controller) -> None:
    await kopf.operator(
        registry=_registry(config, controller), settings=_settings(), standalone=True, clusterwide=True
    )


def _registry(config: ClusterConfig, controller: Controller) -> kopf.OperatorRegistry:
    registry, sessions = kopf.OperatorRegistry(), SessionFactory(config)
    for resource in (ASSETS, ASSETLOCKS, MAINTENANCE_WINDOWS, LEASES):
        _on_event(registry, controller, resource)

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return await sessions.open()

    return registry


def _on_event(registry: kopf.OperatorRegistry, controller: Controller, resource: Resource) -> None:
    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
    async def handle(event: kopf.RawEvent, **_: Any) -> None:
        controller.event(resource.kind, event["type"], dict(event["object"]))


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.watching.inactivity_timeout = INACTIVITY
    settings.watching.label_selectors[LEASES.group, LEASES.plural] = names.ASSET_LABEL
    return settings


class _NoDiffs(kopf.DiffBaseStorage):
    """Nothing is kept of objects: ``on.event`` handlers see no diffs, and kopf would copy every object for them."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing was kept."""

    def store(self, **_: Any) -> None:
        """Keep nothing."""
