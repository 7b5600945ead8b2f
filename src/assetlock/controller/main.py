"""The controller as a process: one thread watches, one stands for election, the main one decides.

Nothing that the API server answers, or does not, ends it: it goes on when it can. Only a signal does, and then the
next one begins at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from assetlock.controller import health
from assetlock.controller.clock import SystemClock
from assetlock.controller.controller import Controller
from assetlock.controller.election import Election
from assetlock.controller.events import EventPublisher
from assetlock.controller.inbox import Inbox
from assetlock.controller.kopf_watches import WATCHED, KopfWatches
from assetlock.controller.pulse import Pulse
from assetlock.controller.settings import Settings
from assetlock.controller.watch_ages import WatchAges
from assetlock.kube.api import Api
from assetlock.kube.config import ClusterConfig
from assetlock.kube.http import HttpTransport
from assetlock.kube.recorder import EventRecorder

REQUEST_WITHIN = 12.0
"""Seconds that a request may take: somebody's webhook that hangs is given up by the API server after ten."""

LONGEST_PAUSE = 0.5
"""A request that is to be repeated later than this is left to whoever asked for it."""

DRAINS_WITHIN = 1.0

COLLECTIONS = (2_000, 20, 1_000)
"""Garbage is looked for among all objects rarely: with ten thousand locks that stops everything for 0.3 s."""

log = logging.getLogger(__name__)


async def run(configure: Callable[[], ClusterConfig], settings: Settings) -> None:
    """Reconcile whenever this process leads, until a signal comes.

    ``configure`` is called once for each thread that talks to the API server. Raises what is broken in this program.
    """
    gc.set_threshold(*COLLECTIONS)
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    transport = HttpTransport(configure())
    api = Api(transport, timeout=REQUEST_WITHIN, longest_pause=LONGEST_PAUSE)
    recorder = EventRecorder(api, identity)
    controller = Controller(api, SystemClock(), settings.limits(), EventPublisher(recorder))
    inbox, ages, pulse = Inbox(controller.event), WatchAges(r.plural for r in WATCHED), Pulse()
    election = Election(configure, settings, identity, pulse, controller.lead)
    telling = asyncio.create_task(recorder.run(), name="tell")
    try:
        async with health.serve(settings, health.Health(controller, election, ages, pulse)):
            await _until_signalled(
                pulse.run(),
                inbox.run(),
                controller.run(),
                KopfWatches(configure, inbox.put, ages).run(),
                election.run(),
            )
            await recorder.drain(DRAINS_WITHIN)
    finally:
        telling.cancel()
        await transport.close()


async def _until_signalled(*work: Coroutine[Any, Any, None]) -> None:
    """Do all of this until SIGTERM or SIGINT comes; raises what ends any of it before."""
    signalled, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    tasks = [asyncio.create_task(each) for each in work]
    waiting = asyncio.create_task(signalled.wait())
    ended, _ = await asyncio.wait((*tasks, waiting), return_when=asyncio.FIRST_COMPLETED)
    for task in (*tasks, waiting):
        task.cancel()
    await asyncio.gather(*tasks, waiting, return_exceptions=True)
    for task in ended:
        task.result()
