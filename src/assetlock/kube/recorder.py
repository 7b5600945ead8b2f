"""Telling people what happened, as Kubernetes Events (events.k8s.io/v1).

`record` never waits and never fails: Events are put into a bounded queue, and the `run` task writes them.
The same thing said again within six minutes becomes a series (one Event with a count), and no object gets
more than a few Events a minute. What can't be written is counted and let go; an Event is news, not a
record.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from assetlock.core.messages import printable
from assetlock.kube.api import Api
from assetlock.kube.buckets import TokenBuckets
from assetlock.kube.errors import Conflict, KubeError, NotFound
from assetlock.kube.resources import EVENTS, Object
from assetlock.model.times import format_micro_time

logger = logging.getLogger(__name__)

REPORTING_CONTROLLER = "assetlock.dev/controller"
_SERIES_LIFE: float = 360.0
_SERIES_KEPT: int = 2048
_NOTE_BYTES: int = 1024


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell about one object."""

    regarding: Object
    reason: str
    note: str
    type: str
    action: str

    def key(self) -> tuple[str, ...]:
        """Equal for things that are the same news."""
        regarding = self.regarding
        about = regarding["uid"] or f"{regarding['kind']}/{regarding['namespace']}/{regarding['name']}"
        return (about, self.reason, self.note, self.type, self.action)


@dataclass(slots=True)
class _Series:
    """An Event in the cluster, and how often it was said."""

    event: Object
    count: int
    last: float


class EventRecorder:
    """Takes news from anywhere in the loop and writes them from one task."""

    def __init__(
        self,
        api: Api,
        instance: str,
        *,
        capacity: int = 1000,
        burst: int = 25,
        period: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        #: How many news were let go.
        self.dropped = 0
        self._api = api
        self._instance = instance[:128]
        self._clock = clock
        self._now = now
        self._queue: asyncio.Queue[News] = asyncio.Queue(capacity)
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._buckets = TokenBuckets(burst=burst, period=period, clock=clock)

    def record(
        self, regarding: Object, reason: str, note: str, *, type: str = "Normal", action: str = "Reconcile"
    ) -> None:
        """Tell something about an object (at least its apiVersion, kind and metadata). Never fails."""
        try:
            self._queue.put_nowait(
                News(_reference(regarding), reason, _shortened(printable(note)), type, action)
            )
        except (asyncio.QueueFull, KeyError, TypeError, AttributeError):
            self.dropped += 1
            logger.warning("an event %s could not be taken: %s", reason, note)

    async def run(self) -> NoReturn:
        """Write what was recorded, until cancelled."""
        while True:
            news = await self._queue.get()
            try:
                await self._write(news)
            except KubeError as error:
                self.dropped += 1
                logger.info("an event %s could not be written: %s", news.reason, error)
            except Exception:
                self.dropped += 1
                logger.exception("an event %s could not be written", news.reason)
            finally:
                self._queue.task_done()

    async def drain(self, timeout: float = 2.0) -> None:
        """Wait a little until what was recorded is written, before stopping."""
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            logger.info("%d events were left unwritten", self._queue.qsize())

    async def _write(self, news: News) -> None:
        series = self._known_series(news)
        if series is not None:
            series.count += 1
            series.last = self._clock()
        if not self._buckets.take(news.key()[0]):
            self.dropped += series is None
            return
        if series is None or not await self._continue(series):
            await self._begin(news)

    def _known_series(self, news: News) -> _Series | None:
        series = self._series.get(news.key())
        if series is not None and self._clock() - series.last >= _SERIES_LIFE:
            del self._series[news.key()]
            return None
        return series

    async def _continue(self, series: _Series) -> bool:
        """Write the new count; False if the Event is not there any more, or is not as we left it."""
        metadata = series.event["metadata"]
        patch: Object = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "series": {"count": series.count, "lastObservedTime": format_micro_time(self._now())},
        }
        try:
            series.event = await self._api.merge_patch(EVENTS, metadata["namespace"], metadata["name"], patch)
        except (NotFound, Conflict):
            return False
        return True

    async def _begin(self, news: News) -> None:
        body = self._event(news)
        event = await self._api.create(EVENTS, body["metadata"]["namespace"], body)
        self._series[news.key()] = _Series(event, 1, self._clock())
        self._series.move_to_end(news.key())
        while len(self._series) > _SERIES_KEPT:
            self._series.popitem(last=False)

    def _event(self, news: News) -> Object:
        name = f"{news.regarding['name'][:230].rstrip('.-')}.{secrets.token_hex(8)}"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": news.regarding["namespace"] or "default"},
            "eventTime": format_micro_time(self._now()),
            "reportingController": REPORTING_CONTROLLER,
            "reportingInstance": self._instance,
            "regarding": {name: value for name, value in news.regarding.items() if value},
            "reason": news.reason,
            "note": news.note,
            "type": news.type,
            "action": news.action,
        }


def _reference(regarding: Object) -> Object:
    metadata = regarding["metadata"]
    return {
        "apiVersion": regarding["apiVersion"],
        "kind": regarding["kind"],
        "name": metadata["name"],
        "namespace": metadata.get("namespace") or "",
        "uid": metadata.get("uid") or "",
        "resourceVersion": metadata.get("resourceVersion") or "",
    }


def _shortened(note: str) -> str:
    """The note, cut to what the API server takes, between two characters."""
    data = note.encode()
    if len(data) <= _NOTE_BYTES:
        return note
    return data[: _NOTE_BYTES - len("…".encode())].decode(errors="ignore") + "…"
