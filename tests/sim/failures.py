"""The failures that an API server answers with: a code, a reason, and a `Status` body as clients parse it."""

import json
from typing import Any


class Refusal(Exception):
    """Raised anywhere below the server's front to answer a request with a `Status` of failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata

    def status(self) -> dict[str, Any]:
        """The `Status` object itself."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata or {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        return status | {"code": self.code}

    def body(self) -> bytes:
        """The `Status` as it goes over the wire."""
        return json.dumps(self.status()).encode()

    def headers(self) -> dict[str, str]:
        """The headers that come with it."""
        headers = {"content-type": "application/json"}
        if self.details and "retryAfterSeconds" in self.details:
            headers["retry-after"] = str(self.details["retryAfterSeconds"])
        return headers


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> Refusal:
    """There is no object of this name."""
    message = f'{_qualified(group, plural)} "{name}" not found'
    return Refusal(404, "NotFound", message, details=_details(group, plural, name))


def no_such_path() -> Refusal:
    """The server does not know this resource or subresource."""
    return Refusal(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(group: str, plural: str, name: str) -> Refusal:
    """A create met an object of the same name."""
    message = f'{_qualified(group, plural)} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, details=_details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str = "") -> Refusal:
    """A precondition (resourceVersion or uid) does not hold."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return Refusal(409, "Conflict", message, details=_details(group, plural, name))


def invalid(group: str, kind: str, name: str, field: str, why: str) -> Refusal:
    """The object breaks a rule in this field."""
    message = f'{_qualified(group, kind)} "{name}" is invalid: {field}: {why}'
    details = _details(group, kind, name) | {"causes": [{"message": why, "field": field}]}
    return Refusal(422, "Invalid", message, details=details)


def bad_request(message: str) -> Refusal:
    """The request itself makes no sense."""
    return Refusal(400, "BadRequest", message)


def forbidden(group: str, plural: str, name: str, why: str) -> Refusal:
    """The requester may not do this."""
    message = f'{_qualified(group, plural)} "{name}" is forbidden: {why}'
    return Refusal(403, "Forbidden", message, details=_details(group, plural, name))


def expired(message: str, *, continue_token: str = "") -> Refusal:
    """What was asked for is older than what the server still knows."""
    return Refusal(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_old(wanted: int, oldest: int) -> Refusal:
    """A watch wants to start at a revision that has been compacted away."""
    return expired(f"too old resource version: {wanted} ({oldest})")


def from_the_future(wanted: int, current: int) -> Refusal:
    """A list wants a revision that the server has not reached."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Refusal(
        504,
        "Timeout",
        f"Too large resource version: {wanted}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def too_many_requests(seconds: int = 1) -> Refusal:
    """Priority and fairness turned the request away unexecuted."""
    return Refusal(
        429,
        "TooManyRequests",
        "The server has received too many requests and has asked us to try again later",
        details={"retryAfterSeconds": seconds},
    )


def internal_error(message: str) -> Refusal:
    """The server failed; nothing is said about whether the request was executed."""
    return Refusal(500, "InternalError", f"Internal error occurred: {message}", details={})
