"""kopf at the edge: it watches, in a thread of its own, and hands over what it hears.

When kopf ends it cancels every task that was begun in its event loop after it, and it ends over any answer that it
does not expect. So each of its lives has a loop of its own, and the next one begins after a pause that grows. A life
that does not watch all that there is to watch (its definition was missing, or a watch fell silent) is ended too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import kopf

from assetlock.controller import metrics
from assetlock.controller.beside import Stop, run_beside, stopped
from assetlock.controller.kopf_session import SessionFactory
from assetlock.controller.watch_ages import WatchAges
from assetlock.core import names
from assetlock.kube.config import ClusterConfig
from assetlock.kube.resources import ASSETLOCKS, ASSETS, LEASES, MAINTENANCE_WINDOWS

WATCHED = (ASSETS, ASSETLOCKS, MAINTENANCE_WINDOWS, LEASES)
INACTIVITY = 70.0
STARTS_WITHIN = 3.0
"""Seconds after which a watch that was not heard has not begun: perhaps its kind was not served."""

PAUSES = (0.2, 0.5, 1.0, 2.0)
SOUND_LIFE = 30.0
"""Seconds of life after which the next pause is the shortest again."""

STOPS_WITHIN = 0.5

TakeIn = Callable[[str, str | None, dict[str, Any]], None]
"""Told of an event, in kopf's thread: its kind, its type (``None`` while a watch lists) and the object."""

log = logging.getLogger(__name__)


class KopfWatches:
    """Watches all that decisions are made from."""

    def __init__(self, configure: Callable[[], ClusterConfig], take_in: TakeIn, ages: WatchAges) -> None:
        self._configure = configure
        self._take_in = take_in
        self._ages = ages

    async def run(self) -> None:
        """Watch until cancelled."""
        await run_beside("watches", self._live_again_and_again, stops_within=STOPS_WITHIN)

    def _live_again_and_again(self, stop: Stop) -> None:
        config, pauses = self._configure(), _pauses()
        while not stop.done():
            began = time.monotonic()
            why = _run_to_its_end(self._live(config, stop))
            if stop.done():
                return
            if time.monotonic() - began > SOUND_LIFE:
                pauses = _pauses()
            pause = next(pauses)
            metrics.WATCH_RESTARTS.inc()
            log.warning("watching is begun again", extra={"why": why, "pause": pause})
            with contextlib.suppress(TimeoutError):
                stop.result(pause)

    async def _live(self, config: ClusterConfig, stop: Stop) -> str:
        """One life of kopf; says why it ended."""
        self._ages.begin()
        ends = [
            asyncio.create_task(stopped(stop)),
            asyncio.create_task(self._lacking(), name="look after watches"),
            asyncio.create_task(_watch(self._registry(config)), name="watch"),
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return "; ".join(str(end.result()) for end in ends if end.done())

    async def _lacking(self) -> str:
        """Return once something is not watched that should be, and say what."""
        while True:
            await asyncio.sleep(0.5)
            if silent := self._ages.silent_since_begun():
                return f"nothing was heard of {', '.join(silent)} for too long"
            if unheard := self._ages.unheard(STARTS_WITHIN):
                return f"no watch of {', '.join(unheard)}"

    def _registry(self, config: ClusterConfig) -> kopf.OperatorRegistry:
        registry, sessions = kopf.OperatorRegistry(), SessionFactory(config, self._ages)
        for resource in WATCHED:
            self._on_event(registry, resource.group, resource.version, resource.plural, resource.kind)

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.AiohttpSession:
            return await sessions.open()

        return registry

    def _on_event(
        self, registry: kopf.OperatorRegistry, group: str, version: str, plural: str, kind: str
    ) -> None:
        @kopf.on.event(group, version, plural, registry=registry)
        async def handle(event: kopf.RawEvent, **_: Any) -> None:
            self._take_in(kind, event["type"], dict(event["object"]))


async def _watch(registry: kopf.OperatorRegistry) -> str:
    """Run kopf; says why it ended, whatever it is.

    Its own way of ending waits for seconds for what hangs. Here it is over as soon as any part of it is.
    """
    try:
        parts = await kopf.spawn_tasks(
            registry=registry, settings=_settings(), standalone=True, clusterwide=True
        )
        ended, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in ended:
            part.result()
    except Exception as error:
        return f"kopf ended: {error!r}"
    return "kopf ended"


def _run_to_its_end(life: Coroutine[Any, Any, str]) -> str:
    """Run it in a loop of its own; what is left over afterwards has a moment to end, and is dropped."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(life)
    finally:
        loop.set_exception_handler(lambda *_: None)
        for left in asyncio.all_tasks(loop):
            left.cancel()
        if left_over := asyncio.all_tasks(loop):
            loop.run_until_complete(asyncio.wait(left_over, timeout=2 * STOPS_WITHIN))
        loop.close()


def _pauses() -> Iterator[float]:
    yield from PAUSES
    while True:
        yield PAUSES[-1]


class _Backoffs:
    """Of a request that fails: it is never given up, as long as this life of kopf lasts."""

    def __iter__(self) -> Iterator[float]:
        return _pauses()


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    settings.queueing.exit_timeout = STOPS_WITHIN
    settings.networking.error_backoffs = _Backoffs()
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
