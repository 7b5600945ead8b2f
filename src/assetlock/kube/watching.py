"""What the lines of a watch mean.

Pure: a line in, an event or an exception out. Bad data is never guessed at: a line that can't be understood
breaks the watch (`TransportError`), and whoever watches starts it again from the last version it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from assetlock.kube.decoding import decode
from assetlock.kube.errors import TransportError, error_from_status
from assetlock.kube.resources import Object

KNOWN_TYPES: frozenset[str] = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change: ADDED, MODIFIED or DELETED with the object, or BOOKMARK with just a resourceVersion."""

    type: str
    object: Object

    @property
    def resource_version(self) -> str:
        """The version from which a watch would go on after this event."""
        return str(self.object["metadata"].get("resourceVersion") or "")


def parse_event(line: bytes) -> WatchEvent | None:
    """The event of a line; None for a type that is not known (a newer server's), to be passed over.

    Raises `Gone` or another `ApiError` for an ERROR event, `TransportError` for what is no event at all.
    """
    try:
        fields = decode(line)
    except ValueError as error:
        raise TransportError(f"a watch line is not JSON: {error}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        raise TransportError("a watch line is not an event")
    kind, body = fields["type"], fields.get("object")
    if kind == "ERROR":
        raise error_from_status(_code(body), body)
    if kind not in KNOWN_TYPES:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise TransportError(f"a watch event {kind} has no object")
    return WatchEvent(kind, body)


def _code(body: object) -> int:
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, int) else 500
