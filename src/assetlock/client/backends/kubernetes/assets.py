"""The Assets of locks that only programs know: made where they are missing, and compared with what the program says.

An Asset that somebody has described is never changed: whoever asks for fewer locks at once than its capacity is
refused.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections.abc import Mapping
from typing import Any

from assetlock.client import clock
from assetlock.client.api import ASSETS, Api, Conflict, Forbidden, NotFound, Object
from assetlock.client.locking.backend import Wanted
from assetlock.client.locking.errors import LockDenied

log = logging.getLogger("assetlock")

LABEL = "app.kubernetes.io/managed-by"
OURS = "assetlock-client"
REMEMBERED = 60.0
"""Seconds for which an Asset that was found right is not read again."""

_LONGEST = 63


def asset_name(scope: str, name: str) -> str:
    """The Asset for a function's own name: readable, and no other name has the same."""
    full = f"{scope}.{name}"
    readable = re.sub(r"[^a-z0-9]+", "-", full.lower()).strip("-")
    if readable == full.lower().replace(".", "-") == full.replace(".", "-") and len(readable) <= _LONGEST:
        return readable
    digest = hashlib.sha256(full.encode()).hexdigest()[:10]
    return f"{readable[-(_LONGEST - 11) :].strip('-')}-{digest}".lstrip("-")


class Assets:
    """Those in a namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._right: dict[tuple[str, int], float] = {}
        self._mutex = threading.Lock()

    def forget(self, wanted: Mapping[str, str]) -> None:
        """Read these again: one of them seems to be gone."""
        with self._mutex:
            self._right = {key: until for key, until in self._right.items() if key[0] not in wanted.values()}

    def provide(self, wanted: Wanted, names: Mapping[str, str]) -> None:
        """See to it that the Assets are there, and have no larger capacity than the program says."""
        most = wanted.max_locks or 1
        for name, asset in names.items():
            with self._mutex:
                if self._right.get((asset, most), 0) > clock.now():
                    continue
            self._provide(name, asset, most)
            with self._mutex:
                self._right[asset, most] = clock.now() + REMEMBERED

    def _provide(self, name: str, asset: str, most: int) -> None:
        try:
            found = self._found(name, asset, most)
        except Forbidden as error:
            raise LockDenied(
                f"{name} needs the Asset {asset}, which is not there, or not yours to read or create in namespace "
                f"{self._namespace}: have it created with capacity {most}, or the right granted ({error})",
                asset=name,
            ) from error
        self._compare(found, name, most)

    def _found(self, name: str, asset: str, most: int) -> Object:
        path = ASSETS.path(self._namespace, asset)
        try:
            return self._api.get(path)
        except NotFound:
            pass
        try:
            return self._api.create(ASSETS.path(self._namespace), _body(name, asset, most))
        except Conflict:
            return self._api.get(path)

    def _compare(self, found: Object, name: str, most: int) -> None:
        capacity = int(found["spec"].get("capacity") or 1)
        if capacity < most:
            log.warning(
                "max_locks of %s is %d here and %d elsewhere: %d counts", name, most, capacity, capacity
            )
        if capacity > most:
            self._lower(found, name, most, capacity)

    def _lower(self, found: Object, name: str, most: int, capacity: int) -> None:
        meta: dict[str, Any] = found["metadata"]
        if (meta.get("labels") or {}).get(LABEL) != OURS:
            raise LockDenied(
                f"max_locks of {name} is {most}, and its Asset {meta['name']} has capacity {capacity}, so more could "
                f"hold it at once: set spec.capacity to {most}, or leave max_locks out",
                asset=name,
            )
        log.warning("max_locks of %s is %d here and %d elsewhere: %d counts", name, most, capacity, most)
        precondition = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {"metadata": precondition, "spec": {"capacity": most}}
        try:
            self._api.patch(ASSETS.path(self._namespace, meta["name"]), body)
        except Conflict:
            self._compare(self._api.get(ASSETS.path(self._namespace, meta["name"])), name, most)


def _body(name: str, asset: str, most: int) -> Object:
    return {
        "apiVersion": ASSETS.api_version,
        "kind": ASSETS.kind,
        "metadata": {"name": asset, "labels": {LABEL: OURS}},
        "spec": {"type": "Function", "displayName": name[:253], "capacity": most},
    }
