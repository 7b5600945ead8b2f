"""What may arrive at a webhook: AdmissionReviews bent in any way, things that look like them, and garbage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from assetlock.core import names
from tests.admission.reviews import KEY, UID, lease, stamped

Json = Any

ODD: tuple[Json, ...] = (
    None, True, False, 0, -1, 1.5, 2**63, -(2**31), 1e308, "", " ", "\n", "\x00", "\ud800", "é" * 300, "%s{0}",
    "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00", "2026-02-30T00:00:00Z", "Infinity", "P1Y", "-5m",
    "9" * 400, [], {}, [[]], [None], {"": ""}, {"metadata": None}, f"{UID}\n7 - alice", f"{UID}\n", f"{UID}\n0 - bob",
    f"{UID}\nx - bob", f"{UID}\r\n7 - bob", "../../etc/passwd", "true", names.FENCED_LABEL, names.ASSET_LABEL,
)  # fmt: skip
"""Values that code trips over, and some that mean something in another place."""

KEYS = ("spec", "labels", "deletionTimestamp", "finalizers", "subResource", names.FENCED_LABEL, KEY, "x")
"""Where a value that belongs elsewhere may turn up."""

USERNAMES = ("bob", "alic", "alice ", "- alice", "7 - alice", "Alice", "alice\n7 - bob", "ali\u0000ce")
"""Strangers, some of whom would like to be taken for alice."""


class Choices:
    """Choices made by a string of bytes, the way fuzzers do it: the same bytes make the same review."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def below(self, limit: int) -> int:
        """A number from 0 on; 0 when the bytes have run out."""
        return next(self._data, 0) % limit

    def one_of(self, items: Sequence[Any]) -> Any:
        """One of some, the first when the bytes have run out."""
        return items[self.below(len(items))]

    def value(self, depth: int = 2) -> Json:
        """Any JSON."""
        kind = self.below(8 if depth else 6)
        if kind < 5:
            return self.one_of(ODD)
        if kind == 5:
            return "".join(chr(self.below(256)) for _ in range(self.below(6)))
        inner = [self.value(depth - 1) for _ in range(self.below(3))]
        return inner if kind == 6 else {str(self.one_of(ODD)): item for item in inner}


def asset(**status: Json) -> Json:
    """An Asset that alice holds."""
    holders = [
        {"identity": "alice", "lock": "first", "fencingToken": 7, "expireTime": "2026-01-01T00:00:00Z"}
    ]
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Asset",
        "metadata": {"name": "vm", "namespace": "shop", "uid": UID},
        "spec": {"type": "VM", "targets": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]},
        "status": {"lockState": "Locked", "fencingToken": 7, "holders": holders, **status},
    }


def assetlock() -> Json:
    """An AssetLock that asks."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "AssetLock",
        "metadata": {"name": "first", "namespace": "shop", "uid": UID},
        "spec": {"assetName": "vm", "ttl": "30m", "bindTo": "Pod", "holder": {"username": "alice"}},
    }


SAMPLES: dict[str, Json] = {
    "/fence": stamped("alice"),
    "/assets": asset(),
    "/assetlocks": assetlock(),
    "/leases": lease(owner="alice", renewTime="2026-01-01T00:00:00.000000Z", leaseTransitions=1),
}


def request(operation: str, by: Json, old: Json, new: Json) -> Json:
    """A review as the API server would send it."""
    sample = new or old
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "review-1",
            "kind": {"group": "", "version": "v1", "kind": str(sample.get("kind"))},
            "resource": {"group": "", "version": "v1", "resource": "things"},
            "name": "settings",
            "namespace": "shop",
            "operation": operation,
            "userInfo": by,
            "object": new,
            "oldObject": old,
            "dryRun": False,
            "options": {"kind": "UpdateOptions"},
        },
    }


def whole(choices: Choices, path: str) -> Json:
    """A sound review for this webhook."""
    operation = choices.one_of(["UPDATE", "CREATE", "DELETE"])
    old = None if operation == "CREATE" else SAMPLES[path]
    new = None if operation == "DELETE" else bent(choices, SAMPLES[path], most=2)
    by = {"username": choices.one_of(["bob", "alice", *USERNAMES]), "groups": ["system:authenticated"]}
    return request(operation, by, old, new)


def bent(choices: Choices, thing: Json, *, most: int = 6) -> Json:
    """A document with some of its nodes taken out, moved, or replaced by others."""
    result = json.loads(json.dumps(thing))
    for _ in range(choices.below(most + 1)):
        _bend(choices, result)
    return result


def _bend(choices: Choices, thing: Json) -> None:
    parent, key = thing, None
    while isinstance(place := parent if key is None else parent[key], dict | list) and place:
        parent, key = place, choices.one_of(sorted(place) if isinstance(place, dict) else range(len(place)))
        if choices.below(3) == 0:
            break
    if key is None:
        return
    match choices.below(3):
        case 0:
            parent[key] = choices.value()
        case 1:
            parent.pop(key)
        case _ if isinstance(parent, dict):
            parent[choices.one_of(KEYS)] = parent.pop(key)


def review(choices: Choices, path: str) -> bytes:
    """A review, bent, as bytes."""
    return json.dumps(bent(choices, whole(choices, path))).encode()


def garbage(choices: Choices) -> bytes:
    """No review at all, or one with something in the midst of it that does not belong there."""
    junk = bytes(choices.below(256) for _ in range(choices.below(12)))
    sound = json.dumps(whole(choices, choices.one_of(sorted(SAMPLES)))).encode()
    at = choices.below(256) * 4
    broken = sound[:at] + junk + sound[at:]
    return bytes(choices.one_of([junk, sound[:at], broken, json.dumps(choices.value()).encode(), *HEAPS]))


HEAPS = (b"[" * 50_000, b'{"request":' * 10_000, b'{"a":1}' * 1000, b"\xff\xfe{", b"9" * 10_000, b"NaN")
