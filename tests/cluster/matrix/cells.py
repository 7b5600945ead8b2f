"""What a cell of the matrix is: one verb on one object by one requester, and what the API server answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from assetlock.kube.transport import Reply

Object = dict[str, Any]


class Outage(StrEnum):
    """What of ours runs while the cell is tried."""

    NONE = "webhook up"
    WEBHOOK = "webhook down"
    OPERATOR = "operator and webhook down"


class Outcome(StrEnum):
    """What becomes of a write, as it stands in the table."""

    ADMITTED = "yes"
    KEPT = "kept"
    DROPPED = "dropped"
    LOCKED = "423"
    FORBIDDEN = "403"
    LATER = "429"
    UNANSWERED = "500"


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, as it is to be sent."""

    method: str
    path: str
    body: object = None
    content_type: str = "application/json"
    params: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Unexpected(AssertionError):
    """An answer that is neither an admission nor a refusal of ours: the test itself is wrong about something."""


def outcome_of(reply: Reply, *, kept: bool) -> Outcome:
    """Read an answer; `kept` says that the object that was answered still has our marks as they were."""
    if reply.status < 300:
        is_dropped = "nothing was written" in reply.headers.get("warning", "")
        return Outcome.DROPPED if is_dropped else Outcome.KEPT if kept else Outcome.ADMITTED
    status = json.loads(reply.body)
    message = str(status.get("message"))
    if reply.status == 423 and status["reason"] == "Locked":
        return Outcome.LOCKED
    if reply.status == 403 and "ValidatingAdmissionPolicy 'assetlock-" in message:
        return Outcome.FORBIDDEN
    if reply.status == 429 and "ocked" in message:
        return Outcome.LATER
    if reply.status == 500 and "failed calling webhook" in message and "assetlock.dev" in message:
        return Outcome.UNANSWERED
    if any(sign in message for sign in _BEHIND_ADMISSION):
        return Outcome.ADMITTED
    raise Unexpected(f"HTTP {reply.status}: {message}")


_BEHIND_ADMISSION = ("does not have a host assigned",)
"""What the API server says when it would now speak to a kubelet, of which there is none."""
