"""Whether a write that was admitted has been made: as the object shows it afterwards, not as the review said.

A review is a question. The write may still be refused by somebody else, be a retry, or never have been sent at all.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
from collections.abc import Callable
from typing import Any, NoReturn

from assetlock.admission.facts import moment
from assetlock.admission.review import Object, Review, metadata_of
from assetlock.kube.api import Api
from assetlock.kube.errors import KubeError, NotFound
from assetlock.kube.resources import Resource

OUR_MANAGER = "assetlock"
"""Who stamps and unstamps, as managed fields name it."""

FRESH = datetime.timedelta(seconds=3)

PAUSE = 0.5
"""Seconds between two looks, and before the first: most writes are made by then."""

TRIES = 60
"""So often an object is looked at: other webhooks may take half a minute, of which the client waits."""

MOST_WAITING = 10_000

log = logging.getLogger(__name__)

_Fields = frozenset[tuple[str, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """The object as it was before the write.

    ``removes``: the write ends it. ``is_fresh``: it was written so lately that managed fields, which have whole
    seconds, may look the same after another write. ``others`` are the fields of writes that are nobody's: a status,
    and our own stamps.
    """

    resource: Resource
    namespace: str | None
    name: str
    uid: str
    version: str
    removes: bool
    fields: _Fields
    others: _Fields
    is_fresh: bool

    def shows(self, live: Object | None) -> bool:
        """Whether the object as it is now can only be so by a write."""
        if live is None:
            return self.removes
        meta = metadata_of(live)
        if self.removes:
            return meta.get("uid") != self.uid or "deletionTimestamp" in meta
        if not self.version:
            return True
        if meta.get("uid") != self.uid or meta.get("resourceVersion") == self.version:
            return False
        fields, others = _fields_of(live)
        if fields - self.fields:
            return True
        return others == self.others if self.is_fresh else not self.fields


def evidence_of(review: Review, now: datetime.datetime) -> Evidence | None:
    """What is to be compared later; ``None`` where nothing of the write ever shows."""
    if review.operation == "CONNECT":
        return None
    before = metadata_of(review.old)
    plural, _, group = review.resource.partition(".")
    is_namespace = (group, plural) == ("", "namespaces")  # Reviewed as if it were in itself.
    namespace = None if is_namespace else review.namespace or None
    fields, others = _fields_of(review.old)
    return Evidence(
        Resource(group, review.version, plural, review.kind, namespace is not None),
        namespace,
        review.name,
        str(before.get("uid") or ""),
        str(before.get("resourceVersion") or ""),
        review.operation == "DELETE" or review.subresource == "eviction",
        fields,
        others,
        any(abs(now - when) < FRESH for *_, time in fields if (when := moment(time))),
    )


@dataclasses.dataclass(slots=True)
class _Awaited:
    evidence: Evidence
    then: Callable[[], None]
    left: int = TRIES


class MadeWrites:
    """Calls back for each write that has been made. What can't be found out is let go; the next one counts."""

    def __init__(
        self, api: Api, *, now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC)
    ) -> None:
        self._api = api
        self._now = now
        self._awaited: dict[object, _Awaited] = {}
        self._woken = asyncio.Event()

    def once_made(self, review: Review, then: Callable[[], None]) -> None:
        """Call ``then`` when the write of a review shows. Never waits, never fails.

        Of several by one requester to one object the last calls back, as soon as one of them shows.
        """
        evidence = evidence_of(review, self._now())
        if evidence is None:
            then()
            return
        requester = review.requester
        which = (requester.username, requester.pod_uid, evidence.resource, evidence.namespace, evidence.name)
        if (known := self._awaited.get(which)) is not None:
            known.then, known.left = then, TRIES
        elif len(self._awaited) < MOST_WAITING:
            self._awaited[which] = _Awaited(evidence, then)
        self._woken.set()

    async def run(self) -> NoReturn:
        """Look, until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(PAUSE)
            for which in list(self._awaited):
                try:
                    await self._look(which)
                except Exception:
                    # What a review says may be anything. It must not keep the writes of others from being seen.
                    self._awaited.pop(which, None)
                    log.exception("a write can't be looked for")
            if not self._awaited:
                self._woken.clear()

    async def _look(self, which: object) -> None:
        awaited = self._awaited[which]
        awaited.left -= 1
        try:
            shows = awaited.evidence.shows(await self._live(awaited.evidence))
        except KubeError as error:
            shows = False
            log.info("%s can't be read: %s", awaited.evidence.name, error)
        if shows:
            self._awaited.pop(which)
            awaited.then()
        elif awaited.left <= 0:
            self._awaited.pop(which)

    async def _live(self, evidence: Evidence) -> dict[str, Any] | None:
        try:
            return await self._api.get(
                evidence.resource, evidence.namespace, evidence.name, metadata_only=True
            )
        except NotFound:
            return None


def _fields_of(thing: Object) -> tuple[_Fields, _Fields]:
    """Who wrote what is there and when; apart from that who wrote a status, or our own stamps."""
    managed = metadata_of(thing).get("managedFields")
    entries = [entry for entry in managed if isinstance(entry, dict)] if isinstance(managed, list) else []
    writes: set[tuple[str, ...]] = set()
    others: set[tuple[str, ...]] = set()
    for entry in entries:
        is_other = entry.get("subresource") == "status" or entry.get("manager") == OUR_MANAGER
        read = (str(entry.get(field) or "") for field in ("manager", "operation", "subresource", "time"))
        (others if is_other else writes).add(tuple(read))
    return frozenset(writes), frozenset(others)
