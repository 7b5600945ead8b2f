"""Asking the API server who somebody is and what he may do.

Answers are the server's; nothing is cached here. A failure to ask is an exception, never a no: our own
trouble must not look like somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assetlock.kube.api import Api
from assetlock.kube.resources import (
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_REVIEWS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    Object,
)

_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated requester."""

    username: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> UserInfo:
        """The requester of a review's `user` or an admission request's `userInfo`."""
        extra = fields.get("extra") or {}
        return cls(
            username=str(fields.get("username") or ""),
            uid=str(fields.get("uid") or ""),
            groups=tuple(map(str, fields.get("groups") or ())),
            extra={str(key): tuple(map(str, values or ())) for key, values in extra.items()},
        )

    @property
    def pod_name(self) -> str | None:
        """The pod that the requester's token is bound to."""
        return next(iter(self.extra.get(_POD_NAME, ())), None)

    @property
    def pod_uid(self) -> str | None:
        """The UID of the pod that the requester's token is bound to."""
        return next(iter(self.extra.get(_POD_UID, ())), None)


@dataclass(frozen=True, slots=True)
class Action:
    """What somebody would like to do."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    version: str = "*"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether he may, and why (not)."""

    allowed: bool
    reason: str = ""


async def may(api: Api, user: UserInfo, action: Action) -> Decision:
    """Whether RBAC (or what else authorizes there) lets this user do this."""
    answer = await api.post_review(SUBJECT_ACCESS_REVIEWS, _access_review(user, action))
    status = _status(answer)
    reason = str(status.get("reason") or status.get("evaluationError") or "")
    return Decision(status.get("allowed") is True and status.get("denied") is not True, reason)


async def may_i(api: Api, action: Action) -> bool:
    """Whether whoever makes the requests of this client may do this."""
    body = {
        "apiVersion": SELF_SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SELF_SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": _attributes(action)},
    }
    status = _status(await api.post_review(SELF_SUBJECT_ACCESS_REVIEWS, body))
    return status.get("allowed") is True and status.get("denied") is not True


async def myself(api: Api) -> UserInfo:
    """Whom the API server takes the requests of this client for."""
    body = {"apiVersion": SELF_SUBJECT_REVIEWS.api_version, "kind": SELF_SUBJECT_REVIEWS.kind}
    return UserInfo.parse(_status(await api.post_review(SELF_SUBJECT_REVIEWS, body)).get("userInfo") or {})


async def authenticate(api: Api, token: str, audiences: Sequence[str] = ()) -> UserInfo | None:
    """Whom the token belongs to; None if the server does not accept it."""
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": spec}
    status = _status(await api.post_review(TOKEN_REVIEWS, body))
    user = status.get("user")
    if status.get("authenticated") is not True or not isinstance(user, dict):
        return None
    return UserInfo.parse(user)


def _access_review(user: UserInfo, action: Action) -> Object:
    return {
        "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {
            "user": user.username,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
            "resourceAttributes": _attributes(action),
        },
    }


def _attributes(action: Action) -> Object:
    attributes = {
        "verb": action.verb,
        "group": action.group,
        "version": action.version,
        "resource": action.resource,
        "subresource": action.subresource,
        "namespace": action.namespace,
        "name": action.name,
    }
    return {key: value for key, value in attributes.items() if value}


def _status(answer: Object) -> Mapping[str, Any]:
    status = answer.get("status")
    return status if isinstance(status, dict) else {}
