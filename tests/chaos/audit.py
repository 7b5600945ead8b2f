"""The product's claim, held against etcd's own history: while one holds, nobody else changes a target's content."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from assetlock.core import names
from assetlock.core.fence.stamp import Stamp, stamp_of
from tests.chaos.clients import NAMESPACE
from tests.chaos.etcd import Revision

_TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})
_LOCKS = f"/registry/{names.GROUP}/assetlocks/{NAMESPACE}/"
_ASSETS = f"/registry/{names.GROUP}/assets/{NAMESPACE}/"
_TARGETS = f"/registry/configmaps/{NAMESPACE}/"


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    """Who was told to hold an asset."""

    lock: str
    user: str
    token: int


@dataclasses.dataclass
class Audit:
    """What the history shows. ``broken`` says what must not be, with the revision."""

    revisions: int = 0
    grants: int = 0
    by_holders: int = 0
    while_free: int = 0
    broken: list[str] = dataclasses.field(default_factory=list)


class Auditor:
    """Walks the revisions in their order. An asset's target is the ConfigMap of its name."""

    def __init__(self) -> None:
        self.audit = Audit()
        self._holders: dict[str, Holder] = {}
        self._marks: dict[str, int] = {}
        self._announced: dict[str, int] = {}
        self._targets: dict[str, dict[str, Any]] = {}

    def walk(self, revisions: Iterable[Revision]) -> Audit:
        """All of them."""
        for revision in revisions:
            self.audit.revisions += 1
            name = revision.key.rpartition("/")[2]
            if revision.key.startswith(_LOCKS):
                self._on_lock(name, revision)
            elif revision.key.startswith(_ASSETS):
                self._on_asset(name, revision)
            elif revision.key.startswith(_TARGETS):
                self._on_target(name, revision)
        return self.audit

    def _on_lock(self, name: str, revision: Revision) -> None:
        state = (revision.obj or {}).get("status", {}).get("state", "Deleted" if revision.obj is None else "")
        for asset, holder in list(self._holders.items()):
            if holder.lock == name and (state in _TERMINAL or state == "Deleted"):
                del self._holders[asset]
        if revision.obj is None or state != "Held":
            return
        asset, token = revision.obj["spec"]["assetName"], revision.obj["status"]["fencingToken"]
        new = Holder(name, revision.obj["spec"]["holder"]["username"], token)
        if self._holders.get(asset) == new:
            return
        if present := self._holders.get(asset):
            self._break(revision, f"{new} was announced while {present} held {asset}")
        if token <= self._announced.get(asset, 0):
            self._break(revision, f"{new} was announced after token {self._announced[asset]} of {asset}")
        self._announced[asset] = token
        self._holders[asset] = new
        self.audit.grants += 1

    def _on_asset(self, name: str, revision: Revision) -> None:
        mark = (revision.obj or {}).get("status", {}).get("fencingToken", 0)
        if mark < self._marks.get(name, 0):
            self._break(revision, f"the high-water mark of {name} fell to {mark}")
        self._marks[name] = mark

    def _on_target(self, name: str, revision: Revision) -> None:
        before, after = self._targets.get(name), revision.obj
        if after is None:
            self._break(revision, f"{name} was deleted, which nobody asked for")
            return
        self._targets[name] = after
        if before is None or before["data"] == after["data"]:
            return
        token, user, number = (*after["data"]["value"].split(" "), "", "")[:3]
        if not number:
            self._break(revision, f"{name} has the content {after['data']}, which no client wrote")
            return
        holder, stamp = self._holders.get(name), _stamp(name, before)
        if holder is not None:
            self.audit.by_holders += 1
            if (holder.user, str(holder.token)) != (user, token):
                self._break(revision, f"{user} with token {token} changed {name} while {holder} held it")
        elif stamp is not None:
            self.audit.by_holders += 1
            if not any(one.identity.username == user for one in stamp.holders):
                self._break(revision, f"{user} changed {name}, which was stamped for {stamp.holders}")
        else:
            self.audit.while_free += 1

    def _break(self, revision: Revision, what: str) -> None:
        self.audit.broken.append(f"revision {revision.number}: {what}")


def _stamp(name: str, target: dict[str, Any]) -> Stamp | None:
    meta = target["metadata"]
    return stamp_of(meta.get("annotations", {}), names.stamp_key(name, NAMESPACE), meta["uid"])
