"""Keeping somebody's picture of a collection true: list it, watch it, and never give up.

`on_replace` is called with the whole collection, `on_event` with each change after it, in order, from one
task. A broken or silent watch goes on from the last version seen; a version that is lost, refused, or of
which nothing comes any more (an etcd restored from a backup) is listed anew. Bad data ends a watch, never
the reflector.

Not promised: every state between two looks. Whoever listens must be able to miss some.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random as random_module
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import NoReturn

from assetlock.kube import retry
from assetlock.kube.api import WATCH_IDLE_TIMEOUT, Api, WatchEvent
from assetlock.kube.errors import Gone, KubeError
from assetlock.kube.resources import Object, Resource

logger = logging.getLogger(__name__)

#: Somebody may be waiting for what we don't see meanwhile, so not long even in an outage.
_LONGEST_PAUSE: float = 5.0
#: A watch that ends sooner and brings nothing is as bad as one that fails.
_SOUND_LIFE: float = 0.5


class Reflector:
    """Feeds a collection and its changes to two callbacks. `run` it as a task; cancel that to stop."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        namespace: str | None = None,
        *,
        on_replace: Callable[[list[Object], str], None],
        on_event: Callable[[str, Object], None],
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        idle_timeout: float = WATCH_IDLE_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.resource = resource
        #: Set once `on_replace` has had the whole collection.
        self.synced = asyncio.Event()
        #: When the server was last heard (an answer, an event, a bookmark), on the given clock.
        self.last_activity: float | None = None
        self._api = api
        self._namespace = namespace
        self._on_replace = on_replace
        self._on_event = on_event
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._metadata_only = metadata_only
        self._idle_timeout = idle_timeout
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._version: str | None = None
        self._pauses = self._new_pauses()

    async def until_synced(self, seconds: float) -> None:
        """Return once everything was listed; raises TimeoutError when that takes longer. Asked before each look."""
        if not self.synced.is_set():
            async with asyncio.timeout(seconds):
                await self.synced.wait()

    async def run(self) -> NoReturn:
        """List and watch until cancelled."""
        while True:
            try:
                if self._version is None or self._is_silent():
                    await self._list()
                await self._watch()
                pause = next(self._pauses)
            except KubeError as error:
                pause = self._after_failure(error)
            except Exception:
                logger.exception("%s: unexpected failure, listing again", self.resource.plural)
                self._version = None
                pause = next(self._pauses)
            await self._sleep(pause)

    def _is_silent(self) -> bool:
        """Nothing was heard for so long that the version itself may be at fault, not just the connection."""
        return self.last_activity is None or self._clock() - self.last_activity >= self._idle_timeout

    async def _list(self) -> None:
        listed = await self._api.list(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            metadata_only=self._metadata_only,
        )
        self._on_replace(listed.items, listed.resource_version)
        self._version = listed.resource_version
        self.last_activity = self._clock()
        self.synced.set()

    async def _watch(self) -> None:
        """Pass on what one watch brings, until it ends or breaks."""
        started = self._clock()
        events = self._api.watch(
            self.resource,
            self._namespace,
            resource_version=self._version or "",
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            metadata_only=self._metadata_only,
            idle_timeout=self._idle_timeout,
        )
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    self._take_in(event)
        finally:
            if self._clock() - started >= _SOUND_LIFE:
                self._pauses = self._new_pauses()

    def _take_in(self, event: WatchEvent) -> None:
        self.last_activity = self._clock()
        if event.type != "BOOKMARK":
            self._pass_on(event.type, event.object)
        self._version = event.resource_version or self._version
        self._pauses = self._new_pauses()

    def _pass_on(self, kind: str, changed: Object) -> None:
        """A listener that can't take one object must not keep the others from it."""
        try:
            self._on_event(kind, changed)
        except Exception:
            name = changed["metadata"].get("name")
            logger.exception("%s %s: a %s event could not be taken in", self.resource.kind, name, kind)

    def _after_failure(self, error: KubeError) -> float:
        """Decide from where to go on, and how long to wait before."""
        if not retry.may_repeat_read(error):
            self._version = None
        pause = retry.pause_after(error, next(self._pauses))
        level = logging.INFO if isinstance(error, Gone) else logging.WARNING
        logger.log(level, "%s: %s; going on in %.1f s", self.resource.plural, error, pause)
        return pause

    def _new_pauses(self) -> Iterator[float]:
        return retry.delays(self._random, longest=_LONGEST_PAUSE)
