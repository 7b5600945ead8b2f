"""Errors as RFC 9457 has them: `application/problem+json`, with who holds what and until when beside it.

``type`` is a path of this server that says in a few lines what to do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from assetlock.kube.errors import ApiError, KubeError, OutcomeUnknown, TransportError
from assetlock.operations.locking import LockLost

MEDIA_TYPE = "application/problem+json"


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its path below ``/problems``, its status, a title, and what to do."""

    name: str
    status: int
    title: str
    advice: str


LOCKED = Kind(
    "locked",
    423,
    "Locked",
    "Somebody else holds the lock, or the asset is under maintenance. `detail` and `holders` say who, since when and "
    "until when. Ask again after `Retry-After` seconds, or ask with `wait` to queue.",
)
KINDS = {
    kind.name: kind
    for kind in (
        LOCKED,
        Kind(
            "bad-request", 400, "Bad request", "The body or a parameter is not what the API takes. See /docs."
        ),
        Kind(
            "unauthorized",
            401,
            "Unauthorized",
            "Send `Authorization: Bearer TOKEN` with a token that the cluster accepts, such as one of "
            "`kubectl create token`. It may have expired, or be for another audience.",
        ),
        Kind(
            "forbidden",
            403,
            "Forbidden",
            "`detail` names the verb that you lack. Ask who manages RBAC there.",
        ),
        Kind("not-found", 404, "Not found", "There is no such asset, lock or path. Names are per namespace."),
        Kind(
            "conflict",
            409,
            "Conflict",
            "`detail` says what is in the way. Read the present state, then decide.",
        ),
        Kind(
            "lock-lost",
            410,
            "Lock lost",
            "The lock has ended: it was released, has expired or was revoked. Stop writing, and ask for another.",
        ),
        Kind("too-large", 413, "Content too large", "The body is larger than the API takes."),
        Kind(
            "unprocessable",
            422,
            "Unprocessable content",
            "`detail` names the refused field, and why.",
        ),
        Kind("too-many-requests", 429, "Too many requests", "Ask again after `Retry-After` seconds."),
        Kind(
            "unavailable",
            503,
            "Unavailable",
            "The API server or the operator did not answer in time. Nothing is lost: ask again after `Retry-After`.",
        ),
        Kind("internal", 500, "Internal error", "This is a fault of the server. Its log says more."),
    )
}
_BY_STATUS = {kind.status: kind for kind in KINDS.values()}


class Problem(Exception):
    """An answer other than success. ``extra`` are further members of the document."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        retry_after: float | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.extra = extra or {}


def problem(status: int, detail: str, **more: Any) -> Problem:
    """A problem of the kind that has this status."""
    return Problem(_BY_STATUS.get(status) or _BY_STATUS[500 if status >= 500 else 400], detail, **more)


def respond(request: Request, found: Problem) -> Response:
    """The problem document."""
    body: dict[str, Any] = {
        "type": f"/problems/{found.kind.name}",
        "title": found.kind.title,
        "status": found.kind.status,
        "detail": found.detail,
        "instance": request.url.path,
        **found.extra,
    }
    headers = {}
    if found.retry_after is not None:
        seconds = max(1, math.ceil(found.retry_after))
        body["retryAfterSeconds"] = seconds
        headers["Retry-After"] = str(seconds)
    if found.kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body, found.kind.status, headers=headers, media_type=MEDIA_TYPE)


def of_kube(error: KubeError) -> Problem:
    """What the API server said, in the words that it used."""
    if isinstance(error, OutcomeUnknown | TransportError):
        return problem(503, f"the API server did not answer: {error}", retry_after=2.0)
    if isinstance(error, ApiError):
        if error.status >= 500:
            return problem(503, error.message, retry_after=error.retry_after or 2.0)
        causes = [
            cause.get("message") for cause in error.details.get("causes") or () if isinstance(cause, dict)
        ]
        extra = (
            {"holders": [{"summary": cause} for cause in causes]} if error.status == 423 and causes else {}
        )
        return problem(error.status, error.message, retry_after=error.retry_after, extra=extra)
    return problem(503, str(error), retry_after=2.0)


def of_lost(error: LockLost) -> Problem:
    """A lock that can't be renewed any more."""
    return problem(410, str(error))


def of_invalid(errors: Sequence[Any]) -> Problem:
    """Input that is not of the documented form, with a JSON pointer to each place."""
    found = [
        {"pointer": "/" + "/".join(str(part) for part in error["loc"][1:]), "detail": str(error["msg"])}
        for error in errors
    ]
    detail = "; ".join(f"{each['pointer']}: {each['detail']}" for each in found[:5])
    return problem(422, detail, extra={"errors": found})


def page(name: str) -> Response:
    """What to do about a kind of problem."""
    kind = KINDS.get(name)
    if kind is None:
        return PlainTextResponse("There is no such problem.\n", 404)
    return PlainTextResponse(f"{kind.status} {kind.title}\n\n{kind.advice}\n")
