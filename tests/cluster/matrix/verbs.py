"""The ways to change an object that a Kubernetes API offers, each as the request that tries it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

from tests.cluster.matrix.cells import Object, Request
from tests.cluster.matrix.objects import (
    ABSENT,
    ASSET,
    DEPLOYMENT,
    FINALIZER,
    HANDMADE_LEASE,
    LOCKS_LEASE,
    NAMESPACE,
    POD,
    SERVICE_ACCOUNT,
    SLICE,
    STAMPED,
    STATEFUL_SET,
    TERMINATING,
    THE_ASSET,
    THE_NAMESPACE,
    UNLOCKED,
    VOLUME,
    WIDGETS,
    Thing,
    absent,
)
from tests.cluster.matrix.requesters import FORMER, Requester

from assetlock.core import names
from assetlock.core.identity import Identity

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
LEASES = (LOCKS_LEASE, HANDMADE_LEASE)
UNSTAMPED = (SLICE, UNLOCKED)


class CannotExist(Exception):
    """There is no such cell; says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """What a request is made for: an object as it is now, and who tries to change it."""

    thing: Thing
    now: Object
    by: Requester
    pod_uid: str | None

    @property
    def identity(self) -> Identity:
        """The requester, as it would stand in a stamp."""
        return Identity(self.by.username, self.pod_uid)

    @property
    def stamp_key(self) -> str:
        """The annotation that its stamp stands in, or would."""
        return names.stamp_key(self.thing.asset, NAMESPACE)

    def path(self, subresource: str | None = None) -> str:
        """Where the object is served."""
        return self.thing.resource.path(self.thing.namespace, self.now["metadata"]["name"], subresource)

    def patch(self, patch: object, content_type: str = MERGE, subresource: str | None = None) -> Request:
        """A patch of the object."""
        return Request("PATCH", self.path(subresource), patch, content_type)

    def metadata(self, **fields: Any) -> Request:
        """A merge patch of metadata."""
        return self.patch({"metadata": fields})

    def changed(self, base: Object) -> Object:
        """An object with the thing's content changed."""
        whole = copy.deepcopy(base)
        *parents, last = self.thing.path
        place = whole
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = self.thing.value
        return whole

    def applied(self, fields: Object, *, force: bool) -> Request:
        """A server-side apply."""
        kind = {"apiVersion": self.thing.resource.api_version, "kind": self.thing.resource.kind}
        body = {**fields, **kind}
        body["metadata"] = {**body.get("metadata", {}), "name": self.now["metadata"]["name"]}
        force_word = "true" if force else "false"
        return Request("PATCH", self.path(), body, APPLY, {"fieldManager": "matrix", "force": force_word})


@dataclasses.dataclass(frozen=True, slots=True)
class Verb:
    """One way to change something; some take off what fences an object, or put such a thing on."""

    title: str
    request: Callable[[Attempt], Request]
    takes_marks: bool = False
    puts_marks: bool = False
    can_be_dry: bool = True

    def __str__(self) -> str:
        return self.title


def only(*things: Thing, why: str) -> Callable[[Thing], None]:
    """Raises CannotExist for all things but these."""

    def check(thing: Thing) -> None:
        if thing not in things:
            raise CannotExist(why)

    return check


def create(attempt: Attempt) -> Request:
    """What its holder deleted, made anew by somebody."""
    thing = attempt.thing
    only(*absent(), why="only targets of an asset can be made anew under a locked name")(thing)
    manifest = attempt.changed(thing.manifest(f"{thing.name}-{ABSENT}"))
    return Request("POST", thing.resource.path(thing.namespace), manifest)


def update(attempt: Attempt) -> Request:
    return Request("PUT", attempt.path(), attempt.changed(attempt.now))


def update_unconditionally(attempt: Attempt) -> Request:
    if attempt.thing.resource.group not in ("", "apps", "batch"):
        raise CannotExist("the API server refuses updates of this kind without a resourceVersion")
    body = attempt.changed(attempt.now)
    del body["metadata"]["resourceVersion"]
    return Request("PUT", attempt.path(), body)


def replace_from_file(attempt: Attempt) -> Request:
    """As ``kubectl replace`` does: the version of what is there, everything else from a file."""
    kept = ("name", "namespace", "uid", "resourceVersion")
    metadata = {key: attempt.now["metadata"][key] for key in kept if key in attempt.now["metadata"]}
    return Request("PUT", attempt.path(), {**attempt.changed(attempt.now), "metadata": metadata})


def json_patch(attempt: Attempt) -> Request:
    step = {"op": "add", "path": "/" + "/".join(attempt.thing.path), "value": attempt.thing.value}
    return attempt.patch([step], JSON_PATCH)


def merge_patch(attempt: Attempt) -> Request:
    return attempt.patch(attempt.changed({}))


def strategic_patch(attempt: Attempt) -> Request:
    if attempt.thing.resource.group in (names.GROUP, WIDGETS.group):
        raise CannotExist("custom resources know no strategic merge patch")
    return attempt.patch(attempt.changed({}), STRATEGIC)


def apply(attempt: Attempt) -> Request:
    return attempt.applied({"metadata": {"labels": {"colour": "blue"}}}, force=False)


def apply_by_force(attempt: Attempt) -> Request:
    return attempt.applied(attempt.changed({}), force=True)


def unlabel(attempt: Attempt) -> Request:
    _has_label(attempt.thing)
    others = {**dict.fromkeys(LEASES, names.ASSET_LABEL), THE_NAMESPACE: names.GUARDED_LABEL}
    return attempt.metadata(labels={others.get(attempt.thing, names.FENCED_LABEL): None})


def strip_annotations(attempt: Attempt) -> Request:
    _has_marks(attempt.thing)
    return attempt.metadata(annotations=None)


def forge(attempt: Attempt) -> Request:
    """The requester writes down that it is the holder."""
    if attempt.thing in LEASES:
        return attempt.metadata(annotations={names.OWNER_ANNOTATION: f"{attempt.identity}x"})
    if attempt.thing is THE_ASSET:
        return attempt.metadata(annotations={names.SETTER_ANNOTATION: f"{attempt.identity}x"})
    if attempt.thing is THE_NAMESPACE:
        guard = f"deployments.apps/app\n99 {attempt.identity}"
        return attempt.metadata(annotations={names.namespace_fence_key(ASSET, NAMESPACE): guard})
    _may_carry_stamp(attempt.thing)
    stamp = f"{attempt.now['metadata']['uid']}\n99 {attempt.identity}"
    marks = {"labels": {names.FENCED_LABEL: "true"}, "annotations": {attempt.stamp_key: stamp}}
    return attempt.applied({"metadata": marks}, force=True)


def copy_stamp(attempt: Attempt) -> Request:
    """The stamp of another object, as controllers copy it to children."""
    _may_carry_stamp(attempt.thing)
    stamp = f"00000000-0000-4000-8000-000000000000\n99 {attempt.identity}"
    return attempt.metadata(labels={names.FENCED_LABEL: "true"}, annotations={attempt.stamp_key: stamp})


def put_old_stamp_back(attempt: Attempt) -> Request:
    """As ``kubectl rollout undo`` does: annotations as they were, the former holder's stamp among them."""
    only(*STAMPED, why="it had no stamp before")(attempt.thing)
    old = f"{attempt.now['metadata']['uid']}\n1 {Identity(FORMER.username)}"
    annotations = {**attempt.now["metadata"]["annotations"], attempt.stamp_key: old}
    return attempt.patch(
        [{"op": "replace", "path": "/metadata/annotations", "value": annotations}], JSON_PATCH
    )


def orphan(attempt: Attempt) -> Request:
    """An owner that does not exist, so that the garbage collector deletes the object."""
    uid = "00000000-0000-4000-8000-000000000000"
    namespaced = attempt.thing.resource.namespaced
    kind = "ConfigMap" if namespaced else "Namespace"
    return attempt.metadata(ownerReferences=[{"apiVersion": "v1", "kind": kind, "name": "none", "uid": uid}])


def change_finalizers(attempt: Attempt) -> Request:
    return attempt.metadata(finalizers=None if attempt.now["metadata"].get("finalizers") else [FINALIZER])


def delete(attempt: Attempt) -> Request:
    return Request("DELETE", attempt.path())


def delete_by_force(attempt: Attempt) -> Request:
    """The first half of ``kubectl replace --force``."""
    params = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}
    return Request("DELETE", attempt.path(), params=params)


def delete_collection(attempt: Attempt) -> Request:
    if attempt.thing is THE_NAMESPACE:
        raise CannotExist("namespaces can't be deleted as a collection")
    name = attempt.now["metadata"]["name"]
    path = attempt.thing.resource.path(attempt.thing.namespace)
    return Request("DELETE", path, params={"fieldSelector": f"metadata.name={name}"})


def scale(attempt: Attempt) -> Request:
    if attempt.thing not in (DEPLOYMENT, STATEFUL_SET) and attempt.thing.resource.group != WIDGETS.group:
        raise CannotExist("it has no /scale")
    return attempt.patch({"spec": {"replicas": 3}}, subresource="scale")


def status(attempt: Attempt) -> Request:
    _has_status(attempt.thing)
    if attempt.thing.resource.group == names.GROUP:
        return attempt.patch({"status": {"fencingToken": 77}}, subresource="status")
    condition = {
        "type": "Example",
        "status": "True",
        "reason": "Tried",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    change = {"message": "tried"} if attempt.thing in (POD, VOLUME) else {"conditions": [condition]}
    return attempt.patch({"status": change}, subresource="status")


def status_metadata(attempt: Attempt) -> Request:
    _has_status(attempt.thing)
    return attempt.patch({"metadata": {"annotations": {"example.test/a": "b"}}}, subresource="status")


def evict(attempt: Attempt) -> Request:
    _of_pods(attempt.thing)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": POD.name}}
    return Request("POST", attempt.path("eviction"), body)


def connect(subresource: str) -> Callable[[Attempt], Request]:
    """A stream into a pod."""

    def request(attempt: Attempt) -> Request:
        _of_pods(attempt.thing)
        params = {"portforward": {"ports": "80"}, "exec": {"command": "sh", "stdout": "true"}}
        return Request("POST", attempt.path(subresource), params=params.get(subresource, {"stdout": "true"}))

    return request


def debug(attempt: Attempt) -> Request:
    _of_pods(attempt.thing)
    container = {"name": "debug", "image": "none"}
    return attempt.patch({"spec": {"ephemeralContainers": [container]}}, STRATEGIC, "ephemeralcontainers")


def resize(attempt: Attempt) -> Request:
    _of_pods(attempt.thing)
    container = {"name": "c", "resources": {"requests": {"cpu": "200m"}}}
    return attempt.patch({"spec": {"containers": [container]}}, STRATEGIC, "resize")


def bind(attempt: Attempt) -> Request:
    _of_pods(attempt.thing)
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": POD.name}, "target": target}
    return Request("POST", attempt.path("binding"), body)


def request_token(attempt: Attempt) -> Request:
    only(SERVICE_ACCOUNT, why="only ServiceAccounts have tokens")(attempt.thing)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    return Request("POST", attempt.path("token"), body)


_of_pods = only(POD, why="only pods have this subresource")
_may_carry_stamp = only(
    *STAMPED, *UNSTAMPED, why="it carries no stamp: its status or its Lease says who holds"
)
_has_label = only(*STAMPED, *LEASES, THE_NAMESPACE, why="it carries no label of ours")
_has_marks = only(*STAMPED, *LEASES, THE_NAMESPACE, THE_ASSET, why="it carries nothing of ours")


def _has_status(thing: Thing) -> None:
    without = (*LEASES, SLICE, UNLOCKED, TERMINATING, SERVICE_ACCOUNT)
    if thing in without or thing.resource.plural in ("configmaps", "secrets"):
        raise CannotExist("it has no /status")


CREATE = Verb("create anew under a locked name", create)
UPDATE = Verb("update", update)
UPDATE_UNCONDITIONALLY = Verb("update without resourceVersion", update_unconditionally)
REPLACE = Verb("replace from a file that knows no stamp", replace_from_file, takes_marks=True)
JSON = Verb("JSON patch", json_patch)
MERGE_PATCH = Verb("merge patch", merge_patch)
STRATEGIC_PATCH = Verb("strategic merge patch", strategic_patch)
APPLY_SOFTLY = Verb("server-side apply", apply)
APPLY_BY_FORCE = Verb("forced server-side apply", apply_by_force)
UNLABEL = Verb("remove our label", unlabel, takes_marks=True)
STRIP = Verb("remove all annotations", strip_annotations, takes_marks=True)
FORGE = Verb("forge a stamp", forge, puts_marks=True)
COPY = Verb("copy the stamp of another object", copy_stamp, puts_marks=True)
PUT_BACK = Verb("put an old stamp back (rollout undo)", put_old_stamp_back, puts_marks=True)
ORPHAN = Verb("set an owner that is gone", orphan)
FINALIZERS = Verb("change finalizers", change_finalizers)
DELETE = Verb("delete", delete)
DELETE_BY_FORCE = Verb("forced delete (replace --force)", delete_by_force)
DELETE_COLLECTION = Verb("delete collection", delete_collection)
SCALE = Verb("/scale", scale)
STATUS = Verb("/status alone", status)
STATUS_METADATA = Verb("/status with metadata", status_metadata)
EVICT = Verb("/eviction", evict)
EXEC = Verb("/exec", connect("exec"), can_be_dry=False)
ATTACH = Verb("/attach", connect("attach"), can_be_dry=False)
PORT_FORWARD = Verb("/portforward", connect("portforward"), can_be_dry=False)
DEBUG = Verb("/ephemeralcontainers", debug)
RESIZE = Verb("/resize", resize)
BIND = Verb("/binding", bind)
TOKEN = Verb("/token", request_token)

VERBS = (
    CREATE,
    UPDATE,
    UPDATE_UNCONDITIONALLY,
    REPLACE,
    JSON,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    APPLY_SOFTLY,
    APPLY_BY_FORCE,
    UNLABEL,
    STRIP,
    FORGE,
    COPY,
    PUT_BACK,
    ORPHAN,
    FINALIZERS,
    DELETE,
    DELETE_BY_FORCE,
    DELETE_COLLECTION,
    SCALE,
    STATUS,
    STATUS_METADATA,
    EVICT,
    EXEC,
    ATTACH,
    PORT_FORWARD,
    DEBUG,
    RESIZE,
    BIND,
    TOKEN,
)
