"""The promises that outlive the operator's sudden death, held against every revision that etcd has stored.

Times are those in the objects: the operator's clock and ours are the same.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from assetlock.core import names
from assetlock.model.durations import parse_duration
from tests.chaos.clients import NAMESPACE
from tests.chaos.etcd import Revision

SKEW = 1.0
_SECOND = 1.0
"""Times of AssetLocks are cut to whole seconds."""

_LOCKS = f"/registry/{names.GROUP}/assetlocks/{NAMESPACE}/"
_ASSETS = f"/registry/{names.GROUP}/assets/{NAMESPACE}/"
_LEASES = f"/registry/leases/{NAMESPACE}/"
_TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})

Object = dict[str, Any]


@dataclasses.dataclass
class Life:
    """One life of the operator, in Unix times. It may have been killed before it was seen to lead."""

    started: float
    leading: float | None = None


@dataclasses.dataclass
class Verdict:
    """What the history shows. ``delays``: the seconds from when a lock could be granted on, until it was."""

    revisions: int = 0
    granted: int = 0
    by_hand: int = 0
    ended: dict[str, int] = dataclasses.field(default_factory=dict)
    delays: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    broken: list[str] = dataclasses.field(default_factory=list)


class Judge:
    """Walks the revisions in their order."""

    def __init__(self, capacities: dict[str, int], lives: Sequence[Life]) -> None:
        self.verdict = Verdict()
        self._capacities = capacities
        self._lives = lives
        self._locks: dict[str, Object] = {}
        self._leases: dict[str, Object] = {}
        self._tokens: dict[str, dict[str, int]] = {asset: {} for asset in capacities}
        self._marks: dict[str, int] = dict.fromkeys(capacities, 0)

    def walk(self, revisions: Iterable[Revision]) -> Verdict:
        """All of them."""
        for revision in revisions:
            self.verdict.revisions += 1
            name = revision.key.rpartition("/")[2]
            if revision.key.startswith(_LOCKS):
                self._on_lock(name, revision)
            elif revision.key.startswith(_ASSETS) and revision.obj is not None:
                self._on_asset(name, revision)
            elif revision.key.startswith(_LEASES):
                self._on_lease(name, revision)
        return self.verdict

    def _on_lock(self, name: str, revision: Revision) -> None:
        before, after = self._locks.get(name), revision.obj
        if after is None:
            self._locks.pop(name, None)
            return
        self._locks[name] = after
        was, now = _state(before), _state(after)
        if was == now:
            return
        if was in _TERMINAL:
            self._break(revision, f"{name} was {was} and became {now}")
        if now in _TERMINAL:
            self.verdict.ended[now] = self.verdict.ended.get(now, 0) + 1
            self._on_end(name, after, revision)
        elif now == "Held":
            self.verdict.granted += 1
            self._count(after["spec"]["assetName"], revision)

    def _on_end(self, name: str, lock: Object, revision: Revision) -> None:
        finished = _time(lock["status"]["finishTime"]) + _SECOND
        reason = next(c["reason"] for c in lock["status"]["conditions"] if c["type"] == "Finished")
        if reason == "WaitTimeout" and finished < _created(lock) + _wait(lock):
            self._break(revision, f"{name} waited less than {lock['spec']['wait']}")
        if _state(lock) == "Failed" and _wait(lock) and reason not in ("WaitTimeout", "HolderGone"):
            self._break(revision, f"{name} waited and failed: {reason}")
        if reason == "Expired" and "expireTime" in lock["status"]:
            self._note_delay(_time(lock["status"]["expireTime"]) + SKEW, finished - _SECOND)

    def _on_asset(self, name: str, revision: Revision) -> None:
        status = (revision.obj or {}).get("status", {})
        holders, mark = status.get("holders", []), status.get("fencingToken", 0)
        whole = [holder for holder in holders if holder["mode"] != "Shared"]
        if len(holders) > self._capacities[name] or (whole and len(holders) > 1):
            self._break(revision, f"{name} has {len(holders)} holders, {len(whole)} of the whole")
        if mark < self._marks[name]:
            self._break(revision, f"the high-water mark of {name} fell from {self._marks[name]} to {mark}")
        for holder in holders:
            known = self._tokens[name].get(holder["acquisition"])
            if holder["fencingToken"] != known:
                if holder["fencingToken"] <= self._marks[name]:
                    self._break(revision, f"{name} got token {holder['fencingToken']} again")
                self._tokens[name][holder["acquisition"]] = holder["fencingToken"]
        self._marks[name] = mark

    def _on_lease(self, name: str, revision: Revision) -> None:
        before, after = self._leases.get(name), revision.obj
        if after is None:
            self._leases.pop(name, None)
            return
        self._leases[name] = after
        asset = after["metadata"].get("labels", {}).get(names.ASSET_LABEL)
        if asset not in self._capacities:
            return
        if names.TOKEN_ANNOTATION in _marked(after) and names.TOKEN_ANNOTATION not in _marked(before):
            self.verdict.by_hand += 1
            self._count(asset, revision)
        if _holder(after) != _holder(before) and names.LOCK_ANNOTATION in _marked(after):
            self._on_claim(asset, before, after, revision)

    def _on_claim(self, asset: str, before: Object | None, lease: Object, revision: Revision) -> None:
        lock = self._locks.get(_marked(lease)[names.LOCK_ANNOTATION])
        if lock is None or lock["metadata"]["uid"] != _marked(lease)[names.ACQUISITION_ANNOTATION]:
            return  # Deleted in the very moment: the operator will find that.
        others = [k for k in self._leases.values() if k is not lease and _holder(k) == _holder(lease)]
        if others:
            return  # It has begun to take all slots, and goes on.
        now = _time(lease["spec"]["acquireTime"])
        for other in self._locks.values():
            if other is not lock and self._deadlocks(other, asset, now) and _rank(other) < _rank(lock):
                self._break(
                    revision, f"{lock['metadata']['name']} came before {other['metadata']['name']} to {asset}"
                )
        if before is not None and _holder(before):
            self._note_delay(max(_ends(before), _created(lock) + _SECOND), now)

    def _deadlocks(self, lock: Object, asset: str, now: float) -> bool:
        """Whether it was shown to be in line, and surely still was. Pods may have ended unseen."""
        spec, meta = lock["spec"], lock["metadata"]
        if spec["assetName"] != asset or _state(lock) != "Pending" or "deletionTimestamp" in meta:
            return False
        taken = (_marked(lease).get(names.ACQUISITION_ANNOTATION) for lease in self._leases.values())
        if spec.get("mode") == "Shared" and meta["uid"] in taken:
            return False  # It has the slot that it needs, and is told next.
        return _wait(lock) > 0 and "podUID" not in spec["holder"] and now < _created(lock) + _wait(lock)

    def _count(self, asset: str, revision: Revision) -> None:
        """Who has been told to hold: AssetLocks, and Leases made by hand that carry a token."""
        locks = [k for k in self._locks.values() if k["spec"]["assetName"] == asset and _state(k) == "Held"]
        whole = [lock for lock in locks if lock["spec"].get("mode", "Exclusive") != "Shared"]
        leases = [
            lease
            for lease in self._leases.values()
            if lease["metadata"].get("labels", {}).get(names.ASSET_LABEL) == asset
            and names.TOKEN_ANNOTATION in _marked(lease)
            and _holder(lease)
        ]
        told = len(locks) + len(leases)
        if told > self._capacities[asset] or (whole and told > 1):
            self._break(revision, f"{told} were told to hold {asset}, {len(whole)} of them all of it")

    def _note_delay(self, due: float, done: float) -> None:
        """From when it was due, or whoever did it was seen to lead if that was later."""
        life = next((life for life in reversed(self._lives) if life.started <= done), None)
        leading = life.leading if life and life.leading is not None else done
        self.verdict.delays.append((done, max(0.0, done - max(due, leading))))

    def _break(self, revision: Revision, what: str) -> None:
        self.verdict.broken.append(f"revision {revision.number}: {what}")


def _state(lock: Object | None) -> str:
    return str((lock or {}).get("status", {}).get("state", ""))


def _marked(lease: Object | None) -> dict[str, str]:
    found: dict[str, str] = (lease or {}).get("metadata", {}).get("annotations", {})
    return found


def _holder(lease: Object | None) -> str:
    return (lease or {}).get("spec", {}).get("holderIdentity") or ""


def _ends(lease: Object) -> float:
    spec = lease["spec"]
    return _time(spec["renewTime"]) + float(spec["leaseDurationSeconds"]) + SKEW


def _wait(lock: Object) -> float:
    return parse_duration(lock["spec"].get("wait", "0s")).total_seconds()


def _created(lock: Object) -> float:
    return _time(lock["metadata"]["creationTimestamp"])


def _rank(lock: Object) -> tuple[bool, int, float, str]:
    spec, uid = lock["spec"], lock["metadata"]["uid"]
    return spec.get("mode") != "Maintenance", -spec.get("priority", 0), _created(lock), uid


def _time(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()
