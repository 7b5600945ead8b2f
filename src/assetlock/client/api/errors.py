"""What can go wrong between a client and the API server, as exceptions that say what is known.

Each has an `exit_code` for commands, by sysexits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

_LONGEST_MESSAGE = 2000


class ClientError(Exception):
    """Any of these."""

    exit_code = os.EX_UNAVAILABLE


class ConfigError(ClientError):
    """There is no usable configuration; says what is missing or wrong."""

    exit_code = os.EX_CONFIG


class Unreachable(ClientError, ConnectionError):
    """The request was never sent: no connection, or no credentials. The server did not act."""


class AnswerLost(ClientError, ConnectionError):
    """The request was sent and its answer did not come: a write may have been done. Read, then decide."""


class ApiError(ClientError):
    """The API server answered with a failure. ``status`` is the HTTP code, ``reason`` Kubernetes' word for it."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after_seconds = retry_after_seconds

    @property
    def transient(self) -> bool:
        """Whether the same request may be answered otherwise in a moment. With a 5xx a write may have been done."""
        return self.status in (408, 429) or self.status >= 500


class Unauthorized(ApiError):
    """401: the server does not accept the credentials."""

    exit_code = os.EX_NOPERM


class Forbidden(ApiError):
    """403: RBAC or a policy says no."""

    exit_code = os.EX_NOPERM


class NotFound(ApiError):
    """404: no such object, or no such kind."""

    exit_code = os.EX_NOINPUT


class Conflict(ApiError):
    """409: the object exists, or is no longer what the write was decided on."""


class Gone(ApiError):
    """410: the resourceVersion is too old; read again."""


class Invalid(ApiError):
    """422: the object breaks its schema or rules."""

    exit_code = os.EX_USAGE


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def error_from(status: int, body: bytes | Mapping[str, Any], retry_after: str | None = None) -> ApiError:
    """The exception for an answer with this code; a body that is no `Status` (a proxy's page) is the message."""
    fields: Any = body
    if isinstance(body, bytes):
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError):
            fields = {"message": body[:_LONGEST_MESSAGE].decode(errors="replace").strip()}
    fields = fields if isinstance(fields, Mapping) else {}
    details = fields.get("details")
    details = details if isinstance(details, Mapping) else {}
    seconds = _seconds(retry_after)
    return _BY_STATUS.get(status, ApiError)(
        status,
        str(fields.get("reason") or ""),
        str(fields.get("message") or f"HTTP {status}")[:_LONGEST_MESSAGE],
        details,
        _seconds(details.get("retryAfterSeconds")) if seconds is None else seconds,
    )


def _seconds(value: object) -> float | None:
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None
