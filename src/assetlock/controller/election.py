"""Leader election in a thread of its own, with its own event loop and connection.

What the controller has to do never keeps it from renewing in time. A process whose controller does not get on at
all must not lead, though: its pulse is looked at before each renewal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from assetlock.controller.beside import Stop, run_beside, stopped
from assetlock.controller.clock import SystemClock
from assetlock.controller.leader_process import LeaderProcess
from assetlock.controller.leadership import Elector
from assetlock.controller.pulse import Pulse
from assetlock.controller.settings import Settings
from assetlock.kube.api import Api
from assetlock.kube.config import ClusterConfig
from assetlock.kube.http import HttpTransport

RELEASE_WITHIN = 0.8
"""Seconds that it may take to release the Lease when the process ends."""


class Election:
    """Runs an Elector. ``changed`` is called in the event loop in which this was made."""

    def __init__(
        self,
        configure: Callable[[], ClusterConfig],
        settings: Settings,
        identity: str,
        pulse: Pulse,
        changed: Callable[[bool], None],
    ) -> None:
        self._configure = configure
        self._settings = settings
        self._identity = identity
        self._pulse = pulse
        self._changed = changed
        self._home = asyncio.get_running_loop()
        self._elector: Elector | None = None

    @property
    def leads(self) -> bool:
        """Whether this process leads."""
        return self._elector is not None and self._elector.leads

    async def run(self) -> None:
        """Stand for election until cancelled, then release the Lease; raises what broke it."""
        await run_beside("election", lambda stop: asyncio.run(self._stand(stop)), stops_within=RELEASE_WITHIN)

    async def _stand(self, stop: Stop) -> None:
        timing = self._settings.timing()
        transport = HttpTransport(self._configure())
        self._elector = elector = Elector(
            Api(transport, timeout=timing.renew_deadline),
            SystemClock(),
            self._identity,
            timing=timing,
            namespace=self._settings.namespace,
            process=LeaderProcess.of(os.getpid(), self._settings.pod_uid),
            fit=lambda: self._pulse.is_alive(timing.duration),
            changed=self._tell,
        )
        standing = asyncio.create_task(elector.run())
        stopping = asyncio.create_task(stopped(stop))
        await asyncio.wait((standing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if standing.done():
            standing.result()
        standing.cancel()
        await asyncio.gather(standing, return_exceptions=True)
        await elector.release()
        await transport.close()

    def _tell(self, leads: bool) -> None:
        with contextlib.suppress(RuntimeError):  # The other loop is closed: the process ends.
            self._home.call_soon_threadsafe(self._changed, leads)
