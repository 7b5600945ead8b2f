"""One AssetLock of ours, as the watch and our own calls show it, and until when it is surely held.

The clocks of client and cluster are never compared. A term began after the request for it was sent, so it lasts
at least its length from then, by the local clock. The length is what the server grants: the difference of two of
its own times.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assetlock.client import clock
from assetlock.client.api import Object
from assetlock.client.locking.backend import Wanted
from assetlock.client.locking.errors import LockLost

HELD = "Held"
_FINAL = ("Released", "Expired", "Revoked", "Failed", "Quarantined")


@dataclass(slots=True)
class Renewal:
    """A renewal that the API server has taken. ``sent`` by the local clock; ``began`` is the server's time."""

    sent: float
    asked: float
    began: datetime.datetime
    generation: int
    seen: bool = False


class Record:
    """Any thread may look; `changed` is notified after each change."""

    def __init__(self, wanted: Wanted, name: str) -> None:
        self.wanted = wanted
        self.name = name
        self.uid: str | None = None
        self.status: Mapping[str, Any] = {}
        self.sent = 0.0
        """When its creation was sent for the first time, by the local clock; 0 before."""

        self.uncertain = 0.0
        """When a call may last have created it without our knowing."""

        self.ttl = 0
        """The seconds of its ``spec.ttl``."""

        self.length = 0.0
        """How long a term of it is, in seconds; 0 before it is held."""

        self.until = 0.0
        """Until when it is surely held, by the local clock."""

        self.changed = threading.Condition()
        self.ending = False
        """Whether we are about to delete it."""

        self._version = 0
        self._renewal: Renewal | None = None
        self._loss: LockLost | None = None
        self._wakes: list[Callable[[], None]] = []
        self._losers: list[Callable[[LockLost], None]] = []

    @property
    def state(self) -> str:
        """In a word; empty before the operator has said anything."""
        return str(self.status.get("state") or "")

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self.state in _FINAL

    def condition(self, kind: str = "Settled") -> Mapping[str, Any]:
        """A condition of its status, empty if it is not there."""
        return next((one for one in self.status.get("conditions") or () if one["type"] == kind), {})

    def see(self, seen: Object) -> None:
        """Take in the AssetLock as an answer or the watch has it, unless something newer is known."""
        with self.changed:
            meta = seen["metadata"]
            version = int(meta["resourceVersion"])
            if version < self._version or (self.uid is not None and meta["uid"] != self.uid):
                return
            self.uid, self._version = meta["uid"], version
            self.status = seen.get("status") or {}
            self._measure()
            self._told()

    def vanish(self, uid: str) -> None:
        """The watch shows that it was deleted."""
        with self.changed:
            if self.uid in (None, uid):
                self.uid = uid
                self.status = {"state": "Released", "conditions": [_DELETED]}
                self._told()

    def renewed(self, sent: float, seen: Object) -> None:
        """The API server has taken a renewal, which counts from then on."""
        with self.changed:
            spec = seen["spec"]
            began = datetime.datetime.fromisoformat(spec["renewTime"])
            generation, last = seen["metadata"]["generation"], self._renewal
            if last is None or began > last.began:
                self._renewal = Renewal(sent, self.ttl, began, generation)
                self.until = max(self.until, sent + min(self.ttl, self.length))
            elif generation > last.generation:  # right after the last one: only the new ttl counts
                self._renewal = Renewal(sent, self.ttl, began, generation)
        self.see(seen)

    def is_renewal_seen(self) -> bool:
        """Whether the operator has said how long the last renewal lasts."""
        with self.changed:
            return self._renewal is None or self._renewal.seen

    def when_lost(self, call: Callable[[LockLost], None]) -> None:
        """Call this when it ends otherwise than by us."""
        with self.changed:
            self._losers.append(call)
            loss = self._loss
        if loss is not None:
            call(loss)

    def add_wake(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call this after each change; gives what ends that."""
        with self.changed:
            self._wakes.append(wake)
        return lambda: self._wakes.remove(wake)

    def _measure(self) -> None:
        """Work out how long it lasts from what the operator says."""
        if self.state != HELD:
            return
        ends, renewal = _time(self.status["expireTime"]), self._renewal
        if not self.length:
            self.length = max((ends - _time(self.status["acquireTime"])).total_seconds(), 1.0)
            self.until = self.sent + self.length
        elif renewal is not None and int(self.status.get("observedGeneration") or 0) >= renewal.generation:
            # Statuses carry whole seconds.
            granted = (ends - renewal.began).total_seconds()
            self.length = renewal.asked if granted >= renewal.asked - 1 else max(granted, 0.0)
            self.until, renewal.seen = renewal.sent + self.length, True

    def _told(self) -> None:
        self.changed.notify_all()
        for wake in self._wakes:
            wake()
        if self.final and self.length and self._loss is None and not self.ending:
            self._loss = self.loss()
            for call in self._losers:
                call(self._loss)

    def loss(self) -> LockLost:
        """What to say about its end."""
        shown = self.wanted.shown
        said = self.condition().get("message") or "AssetLock " + self.name + " has ended"
        message = f"the lock of {shown} is lost ({self.state}): {said}. What you do next is not protected."
        return LockLost(message, asset=shown)

    def gone(self) -> LockLost:
        """The API server has no such AssetLock any more."""
        with self.changed:
            if not self.final:
                self.status = {"state": "Released", "conditions": [_DELETED]}
                self._told()
        return self.loss()

    def waits_long(self) -> bool:
        """Whether so much time has passed since it was sent that nobody knows when its term began."""
        return clock.now() - self.sent > self.length / 6


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


_DELETED = {"type": "Settled", "reason": "Deleted", "message": "somebody has deleted the AssetLock"}
