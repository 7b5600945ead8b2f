"""What the API server sets, keeps and refuses in an object before it stores it. Pure functions on JSON."""

import datetime
from typing import Any

from tests.sim import failures
from tests.sim.kinds import Served
from tests.sim.store import Json

_OPTIONAL_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_SYSTEM_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


def timestamp(moment: datetime.datetime) -> str:
    """A metav1.Time: whole seconds."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def received(served: Served, body: Any, namespace: str) -> Json:
    """A request's object, brought into the shape in which objects are stored."""
    if (
        not isinstance(body, dict)
        or body.get("kind") != served.kind
        or body.get("apiVersion") != served.api_version
    ):
        raise failures.bad_request(f"the object provided is unrecognized (must be a {served.kind})")
    obj = normalised(served, body)
    found = obj["metadata"].setdefault("namespace", namespace)
    if not served.namespaced:
        del obj["metadata"]["namespace"]
    elif found != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return obj


def normalised(served: Served, obj: Json) -> Json:
    """Without what encoding would leave out: empty maps and lists in metadata, nulls and empties of known types."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if value is not None}
    metadata.pop("managedFields", None)
    for key in _OPTIONAL_METADATA:
        if not metadata.get(key, True):
            del metadata[key]
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    if not served.custom:
        rest = {key: _without_nulls(value) for key, value in rest.items() if value not in (None, {}, [])}
        if served.plural == "leases":
            rest.setdefault("spec", {})
    return {"apiVersion": served.api_version, "kind": served.kind, "metadata": metadata, **rest}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def before_create(served: Served, obj: Json, *, uid: str, suffix: str, now: datetime.datetime) -> Json:
    """The object as it is created: the system's own fields set, what a creator may not set dropped."""
    metadata = obj["metadata"]
    if metadata.get("resourceVersion"):
        raise failures.internal_error("resourceVersion should not be set on objects to be created")
    if not metadata.get("name"):
        if not metadata.get("generateName"):
            raise failures.invalid(
                served.group,
                served.kind,
                "",
                "metadata.name",
                "Required value: name or generateName is required",
            )
        metadata["name"] = metadata["generateName"] + suffix
    for key in _SYSTEM_METADATA:
        metadata.pop(key, None)
    metadata.update(uid=uid, creationTimestamp=timestamp(now))
    if served.counts:
        metadata["generation"] = 1
    if served.status:
        obj.pop("status", None)
    return obj


def before_update(served: Served, new: Json, old: Json, subresource: str) -> Json:
    """The object as it may be stored over `old`: what an update can't change is kept, what it must not is refused."""
    if subresource == "status":
        new = _status_only(served, new, old)
    elif served.status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    kept, metadata = old["metadata"], new["metadata"]
    if metadata.get("uid", kept["uid"]) != kept["uid"]:
        raise failures.invalid(
            served.group, served.kind, kept["name"], "metadata.uid", "Invalid value: field is immutable"
        )
    for key in _SYSTEM_METADATA:
        metadata.pop(key, None)
        if key in kept:
            metadata[key] = kept[key]
    added = set(metadata.get("finalizers", ())) - set(kept.get("finalizers", ()))
    if "deletionTimestamp" in kept and added:
        why = "Forbidden: no new finalizers can be added if the object is being deleted"
        raise failures.invalid(served.group, served.kind, kept["name"], "metadata.finalizers", why)
    if served.counts and subresource == "" and _desired(served, new) != _desired(served, old):
        metadata["generation"] += 1
    return new


def _status_only(served: Served, new: Json, old: Json) -> Json:
    kept = {key: value for key, value in old.items() if key != "status"}
    if served.custom:
        kept["metadata"] = dict(old["metadata"])
    else:
        # Built-in kinds let metadata through here; Deployments alone hold on to their labels.
        kept["metadata"] = new["metadata"]
        if served.plural == "deployments":
            kept["metadata"].pop("labels", None)
            kept["metadata"] |= {key: old["metadata"][key] for key in ("labels",) if key in old["metadata"]}
    if "status" in new:
        kept["status"] = new["status"]
    return kept


def _desired(served: Served, obj: Json) -> Json:
    left_out = {"metadata", "status"} if served.status else {"metadata"}
    return {key: value for key, value in obj.items() if key not in left_out}


def unchanged(new: Json, old: Json) -> bool:
    """Whether storing `new` over `old` would change nothing, so that the server doesn't write."""
    metadata = {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}
    return {**new, "metadata": metadata} == old


def terminating(old: Json, now: datetime.datetime) -> Json:
    """The object as it waits for its finalizers."""
    metadata = {**old["metadata"], "deletionTimestamp": timestamp(now), "deletionGracePeriodSeconds": 0}
    if metadata.get("generation"):
        metadata["generation"] += 1
    return {**old, "metadata": metadata}


def emptied(new: Json) -> bool:
    """Whether this update took the last finalizer from an object that is being deleted."""
    return "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers")
