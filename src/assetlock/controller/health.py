"""What a kubelet, a load balancer and Prometheus ask the controller."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator, Iterator

import prometheus_client
from aiohttp import web
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from assetlock.controller import lock_metrics
from assetlock.controller.controller import Controller
from assetlock.controller.election import Election
from assetlock.controller.pulse import Pulse
from assetlock.controller.settings import Settings
from assetlock.controller.watch_ages import WatchAges

_PREFIX = "assetlock_controller"

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Health(Collector):
    """How the process is, read from where it is known whenever somebody asks."""

    controller: Controller
    election: Election
    ages: WatchAges
    pulse: Pulse

    def fault(self) -> str | None:
        """Why what is known of the cluster can't be relied on; ``None`` when it can."""
        if silent := self.ages.silent():
            return f"nothing is heard of {', '.join(silent)}"
        return None if self.controller.fresh else "the cache is not whole, or too old"

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics that are not counted as things happen."""
        age = GaugeMetricFamily(
            f"{_PREFIX}_watch_age_seconds", "Since a watch was last heard.", labels=["resource"]
        )
        for resource, seconds in self.ages.ages().items():
            age.add_metric([resource], seconds)
        yield age
        yield from lock_metrics.collect(self.controller)
        depth, oldest = self.controller.queued
        yield _gauge("leader", "Whether this process leads.", float(self.election.leads))
        yield _gauge("queue_depth", "What is to be looked at now.", depth)
        yield _gauge("queue_oldest_seconds", "For how long the oldest of it has waited.", oldest)
        yield _gauge(
            "loop_lag_max_seconds",
            "How late the event loop was, in the last minute.",
            self.pulse.longest_lag(),
        )


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=value)


@contextlib.asynccontextmanager
async def serve(settings: Settings, health: Health) -> AsyncIterator[None]:
    """Serve ``/healthz`` (alive), ``/readyz`` (standing by or leading, with a whole cache) and ``/metrics``."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        if fault := health.fault():
            return web.Response(status=503, text=fault)
        return web.Response(text="leading" if health.election.leads else "standing by")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=prometheus_client.generate_latest(), content_type="text/plain")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    prometheus_client.REGISTRY.register(health)
    try:
        site = web.TCPSite(runner, settings.health_host, settings.health_port)
        await site.start()
        log.info("serving health", extra={"addresses": [str(address) for address in runner.addresses]})
        yield
    finally:
        prometheus_client.REGISTRY.unregister(health)
        await runner.cleanup()
