"""What can go wrong between us and the API server, as exceptions that say what is known.

Three answers matter to whoever writes: the server refused (`ApiError` and its kinds: nothing was done);
nobody knows (`OutcomeUnknown`: read again before anything else); the request never left (`Unreachable`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from assetlock.kube.decoding import decode


class KubeError(Exception):
    """Anything that the API server, or the way to it, did to a request."""


class TransportError(KubeError):
    """The answer was lost or can't be understood; whether the server acted is not known."""


class Unreachable(TransportError):
    """The request was never sent: no connection, or no credentials. The server did not act."""


class KindNotFound(KubeError):
    """The API server serves no such kind (now)."""


class FieldsDropped(KubeError):
    """The API server stored less of a status than it was sent."""

    def __init__(self, kind: str, name: str, fields: Collection[str]) -> None:
        super().__init__(
            f"{kind} {name} was stored without status.{', status.'.join(sorted(fields))}: the custom resource "
            "definitions in the cluster are older than this program; apply those of its version"
        )


class ApiError(KubeError):
    """The API server answered with a failure."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    @property
    def is_refusal(self) -> bool:
        """Whether the request itself is at fault: sent again, it would be refused again."""
        return 400 <= self.status < 500 and self.status not in (401, 404, 408, 409, 410, 429)


class Unauthorized(ApiError):
    """401: the server does not accept our own credentials."""


class Forbidden(ApiError):
    """403: we, or a policy on us, may not do this."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""

    @property
    def is_of_kind(self) -> bool:
        """Whether it is the path that is not served: then nothing is said of the object."""
        return self.reason != "NotFound"


class Conflict(ApiError):
    """409: the object is no longer what the write was decided on."""


class AlreadyExists(ApiError):
    """409: there is an object with that name."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list anew."""


class Invalid(ApiError):
    """422: the object breaks its schema or rules."""


class Locked(ApiError):
    """423: a lock is in the way."""


class TooManyRequests(ApiError):
    """429: not now."""


class ServerError(ApiError):
    """5xx: the server failed."""


class OutcomeUnknown(ServerError):
    """A write whose answer was lost, or was a failure of the server.

    It may have been done: read, then decide.
    """


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    423: Locked,
    429: TooManyRequests,
}
_MESSAGE_LIMIT: int = 2000


class _Status:
    """The fields of a `Status` object that matter here, whatever was sent in its place."""

    EMPTY: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, body: object) -> None:
        fields = body if isinstance(body, dict) else self.EMPTY
        self.reason = str(fields.get("reason") or "")
        self.message = str(fields.get("message") or "")[:_MESSAGE_LIMIT]
        details = fields.get("details")
        self.details: Mapping[str, Any] = details if isinstance(details, dict) else self.EMPTY


def error_from_status(code: int, body: object, *, retry_after: float | None = None) -> ApiError:
    """The exception for a `Status` object (or whatever came in its place) with this HTTP code."""
    status = _Status(body)
    kind = _BY_STATUS.get(code, ServerError if code >= 500 else ApiError)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    if retry_after is None:
        retry_after = _seconds(status.details.get("retryAfterSeconds"))
    return kind(code, status.reason, status.message or f"HTTP {code}", status.details, retry_after)


def error_from_reply(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The exception for an HTTP reply; a body that is no JSON (a proxy's page) becomes the message."""
    fields: object
    try:
        fields = decode(body)
    except ValueError:
        fields = {"message": body[:_MESSAGE_LIMIT].decode(errors="replace").strip()}
    return error_from_status(code, fields, retry_after=_seconds(headers.get("retry-after")))


def _seconds(value: object) -> float | None:
    """A number of seconds above zero, or None: dates and nonsense are no answer to `how long`."""
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None
