"""What is sent to the API server: an AssetLock, and the patch that renews it."""

from __future__ import annotations

import datetime
import math
import os
import socket

from assetlock.client.api import ASSETLOCKS, Object
from assetlock.client.backends.kubernetes.record import Record
from assetlock.client.backends.kubernetes.watcher import LABEL

FORGOTTEN = 86_400
"""Seconds after which the record of a lock goes that its holder could not delete."""

LONGEST_WAIT = 30 * 86_400


def assetlock(record: Record, names: list[str], wait: float, scope: str, process: str) -> Object:
    """The AssetLock over these Assets. It is tied to other locks of the same piece of work by ``holderId``."""
    wanted = record.wanted
    which = {"assetName": names[0]} if len(names) == 1 else {"assetNames": sorted(names)}
    spec = {
        **which,
        "mode": "Exclusive" if wanted.max_locks is None else "Shared",
        "ttl": f"{record.ttl}s",
        "wait": f"{math.ceil(min(wait, LONGEST_WAIT))}s",
        "holderId": wanted.root or wanted.id,
        "reason": (wanted.reason or f"{scope} on {socket.gethostname()} (pid {os.getpid()})")[:1024],
        "ttlSecondsAfterFinished": FORGOTTEN,
    }
    metadata = {"name": record.name, "labels": {LABEL: process}}
    return {"apiVersion": ASSETLOCKS.api_version, "kind": ASSETLOCKS.kind, "metadata": metadata, "spec": spec}


def renewal(record: Record, ttl: int) -> Object:
    """The patch that lets this very AssetLock last so many seconds from now on; the server puts in its own time."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"metadata": {"uid": record.uid}, "spec": {"renewTime": now, "ttl": f"{ttl}s"}}


def whole_seconds(seconds: float) -> int:
    """Terms are whole seconds; a lock never lasts longer than was asked for, but for the shortest."""
    return max(1, math.floor(seconds))
