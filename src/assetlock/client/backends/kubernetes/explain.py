"""What an AssetLock's status, or an API error, means to the program that asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assetlock.client.api import (
    AnswerLost,
    ApiError,
    ClientError,
    ConfigError,
    Forbidden,
    NotFound,
    Unauthorized,
    Unreachable,
)
from assetlock.client.backends.kubernetes.record import Record
from assetlock.client.locking.backend import Refusal, Wanted
from assetlock.client.locking.errors import BackendUnavailable, LockDenied, LockError

_OTHERS = ("Locked", "Maintenance", "LockDelay", "Quarantined", "WaitTimeout", "LeaseTerminating")
_NO_ANSWER = ("HolderUnknown",)


def refusal(record: Record) -> Refusal:
    """Why it is not held yet. Raises `LockError` where waiting does not help."""
    settled = record.condition()
    reason, message = str(settled.get("reason") or ""), str(settled.get("message") or "")
    shown = record.wanted.shown
    if reason == "AssetNotFound":
        said = (
            f"{shown} can't be locked: {message or 'there is no such Asset'}. Create it, or correct the name."
        )
        raise LockError(said, asset=shown)
    if reason in _NO_ANSWER:
        raise BackendUnavailable(f"{shown} can't be locked now: {message}", asset=shown, retry_after=1.0)
    if record.final and reason not in _OTHERS:
        raise LockError(f"{shown} is not locked ({reason or record.state}): {message}", asset=shown)
    waits_for = str(record.status.get("waitsFor") or "")
    return Refusal((waits_for,) if waits_for else (), None, None, message, queued=True)


def error(failure: ClientError, wanted: Wanted, server: str) -> LockError:
    """The failure of a call, in the terms of whoever locks."""
    shown = wanted.shown
    if isinstance(failure, Forbidden | Unauthorized | ConfigError):
        return LockDenied(f"you may not lock {shown}: {failure}", asset=shown)
    if isinstance(failure, AnswerLost | Unreachable) or (isinstance(failure, ApiError) and failure.transient):
        said = f"{shown} can't be locked or renewed now: {failure}. Try again."
        return BackendUnavailable(
            said, asset=shown, retry_after=getattr(failure, "retry_after_seconds", None) or 1.0
        )
    if isinstance(failure, NotFound):
        return LockError(
            f"{shown} can't be locked: assetlock is not installed in the cluster of {server}", asset=shown
        )
    return LockError(f"{shown} can't be locked: {failure}", asset=shown)


def holder(entry: Mapping[str, Any]) -> str:
    """A holder in an Asset's status, as text."""
    identity = entry.get("identity")
    who = identity.get("username") if isinstance(identity, Mapping) else identity
    since, until = entry.get("acquireTime"), entry.get("expireTime")
    times = f" since {since}" if since else ""
    return f"{who}{times}{f' until {until}' if until else ''}"
