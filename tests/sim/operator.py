"""The real controller as a process of the simulation: fed as kopf would, leading when elected."""

import asyncio
import functools
import logging
import random
from typing import Any

from assetlock.controller.controller import Controller
from assetlock.controller.leadership import Elector, Timing
from assetlock.core import names
from assetlock.core.decision import Event
from assetlock.core.observation import Limits
from assetlock.kube.api import Api, ObjectList
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES, MAINTENANCE_WINDOWS, Object, Resource
from tests.sim.freezing import Detached, Gate
from tests.sim.virtual import VirtualLoop
from tests.sim.world import Process

TIMING = Timing(3.0, 2.0, 0.5)
LONGEST_PAUSE = 0.5
_WATCHED = ((ASSETS, ""), (ASSETLOCKS, ""), (MAINTENANCE_WINDOWS, ""), (LEASES, names.ASSET_LABEL))


class _Silent:
    def tell(self, namespace: str, happening: Event) -> None:
        """Nobody listens."""


class _InPages(Api):
    """Lists in small pages, between which things change and continue tokens expire."""

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        limit: int = 2,
    ) -> ObjectList:
        return await super().list(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
            limit=min(limit, 2),
        )


class Operator:
    """One replica. `elected`: it stands for election; otherwise it always acts, beside others that do."""

    def __init__(self, seed: int | str, *, elected: bool, freezes: bool) -> None:
        self.gate = Gate()
        self._seed = seed
        self._elected = elected
        self._freezes = freezes

    async def run(self, process: Process) -> None:
        """The process, until it is killed."""
        self.gate.enter()
        identity = f"{process.name}_{process.starts}"
        rng = random.Random(f"{self._seed}/{identity}")
        transport = Detached(process.client) if self._freezes else process.client
        api = _InPages(transport, random=rng.random, longest_pause=LONGEST_PAUSE)
        controller = Controller(api, process.clock, Limits(), _Silent())
        async with asyncio.TaskGroup() as tasks:
            for resource, selector in _WATCHED:
                feeder = _feeder(api, process, controller, resource, selector, rng)
                tasks.create_task(feeder.run(), name=f"{process.name} watches {resource.plural}")
            tasks.create_task(controller.run(), name=f"{process.name} reconciles")
            if self._elected:
                elector = Elector(api, process.clock, identity, timing=TIMING, changed=controller.lead)
                tasks.create_task(elector.run(), name=f"{process.name} stands")
            else:
                controller.lead(True)


def _feeder(
    api: Api, process: Process, controller: Controller, resource: Resource, selector: str, rng: random.Random
) -> Reflector:
    """Like kopf: what is listed (again) comes without a type, and what vanished meanwhile not at all."""

    def on_replace(items: list[Object], _version: str) -> None:
        for item in items:
            controller.event(resource.kind, None, item)

    return Reflector(
        api,
        resource,
        on_replace=on_replace,
        on_event=functools.partial(controller.event, resource.kind),
        label_selector=selector,
        clock=process.clock.monotonic,
        random=rng.random,
    )


class FailOnErrors(logging.Handler):
    """Whatever the controller has to log as an error ends the simulation: it never should."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(logging.ERROR)
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        """Take the exception, if there is one."""
        cause: Any = record.exc_info[1] if record.exc_info else None
        self._loop.fail(cause or RuntimeError(record.getMessage()))
