"""AdmissionReviews: read from whatever bytes arrive, answered in the form the API server expects. Pure."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from assetlock.admission.verdict import Refused, Verdict
from assetlock.core import messages
from assetlock.core.fence.namespace_fence import CLOSABLE
from assetlock.core.identity import Identity, Kind
from assetlock.kube.decoding import decode_telling

Object = Mapping[str, Any]
NOTHING: Object = {}

_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"

_UID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CREDENTIAL = re.compile(r"[0-9A-Za-z]+=[!-~]{1,256}")
"""Whoever may impersonate sends what he likes here: only what looks like such an id is one."""


class BadReview(ValueError):
    """What arrived is no AdmissionReview that could be decided."""


@dataclasses.dataclass(frozen=True, slots=True)
class Requester:
    """Who asks, as the API server authenticated it; nothing here is the client's to claim."""

    username: str
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    uid: str = ""

    @property
    def pod_name(self) -> str | None:
        """The pod that the requester's token is bound to."""
        return next(iter(self.extra.get(_POD_NAME, ())), None)

    @property
    def pod_uid(self) -> str | None:
        """The UID of the pod that the requester's token is bound to."""
        found = next(iter(self.extra.get(_POD_UID, ())), None)
        return found if found is not None and _UID.fullmatch(found) else None

    @property
    def credential_id(self) -> str | None:
        """The id of the requester's token or certificate, where the API server gives one."""
        found = next(iter(self.extra.get(_CREDENTIAL_ID, ())), None)
        return found if found is not None and _CREDENTIAL.fullmatch(found) else None

    def is_one_with(self, identity: Identity) -> bool:
        """Whether a lock of ``identity`` is the requester's."""
        if identity.kind is Kind.GROUP:
            return identity.username in self.groups
        return (
            identity.kind is Kind.REQUESTER
            and identity.username == self.username
            and identity.pod_uid in (None, self.pod_uid)
            and identity.credential_id in (None, self.credential_id)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Review:
    """One write that the API server asks about. ``new`` is empty for DELETE, ``old`` for CREATE, both for CONNECT.

    ``resource`` is the plural with its group, also where ``kind`` is that of a subresource; ``version`` is
    its version. Unless it ``is_whole``, what is nested too deeply is missing in both.
    """

    uid: str
    operation: str
    group: str
    kind: str
    subresource: str
    namespace: str
    requester: Requester
    new: Object
    old: Object
    dry_run: bool = False
    resource: str = ""
    version: str = ""
    requested: str = ""
    is_whole: bool = True

    @property
    def name(self) -> str:
        """The object's name; from the object, since a request for a whole collection names none.

        Only the options of exec and the like have no name of their own: there it is the requested one.
        """
        return str(metadata_of(self.old or self.new).get("name") or self.requested)

    @property
    def title(self) -> str:
        """What the request is about, as people speak of it."""
        kind = f"{self.subresource} of {self.resource}" if self.subresource in CLOSABLE else self.kind
        prefix = metadata_of(self.new).get("generateName")
        where = "" if self.resource == "namespaces" else self.namespace
        return messages.named(kind, self.name or f"{prefix}…", where)


def parse(body: bytes) -> Review:
    """The review in ``body``; raises BadReview, and nothing else, for what is none."""
    try:
        fields, is_whole = decode_telling(body)
    except ValueError as error:
        raise BadReview("the body is not JSON") from error
    request = fields.get("request") if isinstance(fields, dict) else None
    if not isinstance(request, dict):
        raise BadReview("the body is not an AdmissionReview with a request")
    uid, operation = request.get("uid"), request.get("operation")
    if not isinstance(uid, str) or not uid:
        raise BadReview("the request has no uid")
    if operation not in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
        raise BadReview("the request is none of CREATE, UPDATE, DELETE and CONNECT")
    if operation == "CONNECT":
        return _read(request, uid, operation, NOTHING, NOTHING, is_whole=is_whole)
    new, old = _object(request, "object"), _object(request, "oldObject")
    if (operation != "DELETE" and not new) or (operation != "CREATE" and not old):
        raise BadReview(f"a request for {operation} lacks its object")
    return _read(
        request,
        uid,
        operation,
        new if operation != "DELETE" else NOTHING,
        old if operation != "CREATE" else NOTHING,
        is_whole=is_whole,
    )


def answer(review: Review, verdict: Verdict) -> dict[str, Any]:
    """The AdmissionReview that carries a verdict back."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not isinstance(verdict, Refused)}
    if isinstance(verdict, Refused):
        response["status"] = _status(review, verdict)
    else:
        if verdict.patch:
            operations = json.dumps([operation.as_json() for operation in verdict.patch])
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(operations.encode()).decode("ascii")
        if verdict.warnings:
            response["warnings"] = list(map(messages.printable, verdict.warnings))
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else NOTHING


def text(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def metadata_of(thing: Object) -> Mapping[str, Any]:
    """The metadata of an object."""
    return mapping(thing.get("metadata"))


def labels_of(thing: Object) -> dict[str, str]:
    """The labels of an object."""
    return _texts(metadata_of(thing).get("labels"))


def annotations_of(thing: Object) -> dict[str, str]:
    """The annotations of an object."""
    return _texts(metadata_of(thing).get("annotations"))


def _texts(value: object) -> dict[str, str]:
    return {key: item for key, item in mapping(value).items() if isinstance(item, str)}


def _read(
    request: Mapping[str, Any], uid: str, operation: str, new: Object, old: Object, *, is_whole: bool
) -> Review:
    kind, resource = mapping(request.get("kind")), mapping(request.get("resource"))
    plural, group = text(resource.get("resource")), text(resource.get("group"))
    return Review(
        uid=uid,
        operation=operation,
        group=text(kind.get("group")),
        kind=text(kind.get("kind")),
        subresource=text(request.get("subResource")),
        namespace=text(request.get("namespace")),
        requester=_requester(request.get("userInfo")),
        new=new,
        old=old,
        dry_run=request.get("dryRun") is True,
        resource=f"{plural}.{group}" if group else plural,
        version=text(resource.get("version")),
        requested=text(request.get("name")),
        is_whole=is_whole,
    )


def _object(request: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = mapping(request.get(field))
    if found and not isinstance(found.get("metadata"), dict):
        raise BadReview(f"{field} has no metadata")
    return found


def _requester(value: object) -> Requester:
    user = mapping(value)
    username = user.get("username")
    if not isinstance(username, str) or not username:
        raise BadReview("the request does not say who asks")
    groups = user.get("groups")
    extra = {
        key: tuple(item for item in items if isinstance(item, str))
        for key, items in mapping(user.get("extra")).items()
        if isinstance(items, list)
    }
    return Requester(
        username,
        tuple(item for item in groups if isinstance(item, str)) if isinstance(groups, list) else (),
        extra,
        text(user.get("uid")),
    )


def _cause(refused: Refused, message: str) -> dict[str, str]:
    cause = {"reason": refused.reason, "message": messages.printable(message)}
    return {**cause, "field": refused.field} if refused.field else cause


def _status(review: Review, refused: Refused) -> dict[str, Any]:
    details: dict[str, Any] = {
        "name": review.name,
        "group": review.group,
        "kind": review.kind,
        "causes": [_cause(refused, cause) for cause in refused.causes],
    }
    if refused.retry_after:
        details["retryAfterSeconds"] = refused.retry_after
    return {
        "status": "Failure",
        "code": refused.code,
        "reason": refused.reason,
        "message": messages.printable(refused.message),
        "details": details,
    }
