"""AdmissionReviews as the API server would send them."""

from __future__ import annotations

import json
import uuid
from typing import Any

from assetlock.admission.review import Review, parse
from assetlock.core import names
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity

UID = "11111111-2222-3333-4444-555555555555"
KEY = names.stamp_key("vm", "shop")


def config_map(*, colour: str = "red", **metadata: Any) -> dict[str, Any]:
    """A small object with a UID."""
    whole = {"name": "settings", "namespace": "shop", "uid": UID, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": whole, "data": {"colour": colour}}


def uid_of(pod: str | None) -> str | None:
    """The UID of the pod of this name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, pod)) if pod else None


def stamped(
    *holders: str, colour: str = "red", uid: str = UID, pod: str | None = None, credential: str | None = None
) -> dict[str, Any]:
    """The object, fenced for these users."""
    identities = (Identity(holder, uid_of(pod), credential) for holder in holders)
    stamp = Stamp(uid, tuple(StampedHolder(7, identity) for identity in identities))
    labels = {names.FENCED_LABEL: "true"}
    return config_map(colour=colour, labels=labels, annotations={KEY: str(stamp)})


def lease(holder: str | None = "job-1", *, owner: str | None = "alice", **spec: Any) -> dict[str, Any]:
    """A Lease that is the lock of asset vm."""
    annotations = {names.ACQUISITION_ANNOTATION: "first"}
    if owner is not None:
        annotations[names.OWNER_ANNOTATION] = str(Identity(owner))
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "asset.vm",
            "namespace": "shop",
            "labels": {names.ASSET_LABEL: "vm"},
            "annotations": annotations,
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60, **spec},
    }


def user(name: str, *groups: str, pod: str | None = None, credential: str | None = None) -> dict[str, Any]:
    """An authenticated requester."""
    told = {"pod-name": pod, "pod-uid": uid_of(pod), "credential-id": credential}
    extra = {f"authentication.kubernetes.io/{key}": [value] for key, value in told.items() if value}
    return {"username": name, "groups": list(groups), "extra": extra}


def body(
    operation: str,
    *,
    by: dict[str, Any],
    new: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    kind: str = "ConfigMap",
    subresource: str = "",
    resource: str = "configmaps",
    group: str = "",
    name: str = "",
) -> bytes:
    """A review as bytes."""
    request = {
        "uid": "review-1",
        "operation": operation,
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "name": name,
        "subResource": subresource,
        "namespace": "shop",
        "userInfo": by,
        "object": new,
        "oldObject": old,
    }
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def review(operation: str, **parts: Any) -> Review:
    """A review, read."""
    return parse(body(operation, **parts))


def applied(thing: dict[str, Any], patch: tuple[Any, ...]) -> dict[str, Any]:
    """The object after a patch of adds and removes."""
    result: dict[str, Any] = json.loads(json.dumps(thing))
    for step in patch:
        place = result
        for part in step.path[:-1]:
            place = place[part]
        if step.op == "remove":
            del place[step.path[-1]]
        else:
            place[step.path[-1]] = step.value
    return result
