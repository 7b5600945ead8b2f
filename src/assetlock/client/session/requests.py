"""What is asked for, and the errors that tell why it is not had."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Any

from assetlock.client.api import ASSETLOCKS, ClientError, Object
from assetlock.model.durations import parse_duration

LOST = 76
"""The exit code for a lock that was lost."""

KEPT_SECONDS = 86_400
"""How long the record of a lock that has ended stays, where its holder could not delete it."""

_NOT_HELD = {
    "AssetNotFound": os.EX_NOINPUT,
    "NotFenceable": os.EX_UNAVAILABLE,
    "HolderUnknown": os.EX_UNAVAILABLE,
}


class LockError(ClientError):
    """A lock is not held."""


class NotAcquired(LockError):
    """The lock was refused, or its wait ran out. ``reason`` is that of the AssetLock's condition."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.exit_code = _NOT_HELD.get(reason, os.EX_TEMPFAIL)


class Lost(LockError):
    """The lock was held and is not any more, or nobody can tell."""

    exit_code = LOST


class NobodyAnswers(LockError):
    """The operator does not answer."""

    exit_code = os.EX_UNAVAILABLE


class NoSuchLock(LockError):
    """The name is that of something else."""

    exit_code = os.EX_USAGE


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. Durations as in an AssetLock; several assets are locked together or not at all."""

    namespace: str
    assets: tuple[str, ...]
    ttl: str | None = None
    wait: str = "0s"
    mode: str = "Exclusive"
    reason: str | None = None
    holder_id: str | None = None

    @property
    def waits(self) -> float:
        """How many seconds it may wait."""
        return parse_duration(self.wait).total_seconds()

    def body(self, name: str) -> Object:
        """The AssetLock of this name."""
        spec: dict[str, Any] = {"mode": self.mode, "wait": self.wait, "ttlSecondsAfterFinished": KEPT_SECONDS}
        spec |= {"assetName": self.assets[0]} if len(self.assets) == 1 else {"assetNames": list(self.assets)}
        optional = {"ttl": self.ttl, "reason": self.reason, "holderId": self.holder_id}
        spec |= {field: value for field, value in optional.items() if value is not None}
        kind = {"apiVersion": ASSETLOCKS.api_version, "kind": ASSETLOCKS.kind}
        return {**kind, "metadata": {"name": name}, "spec": spec}


def new_name(assets: tuple[str, ...]) -> str:
    """A name for an AssetLock that no other has."""
    return f"{assets[0]}-{secrets.token_hex(5)}"
