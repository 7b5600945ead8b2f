"""What can go wrong with a lock. Each error says on what asset, who holds it, until when, and whether to ask again.

`retryable` is made for retry libraries: ``retry=retry_if_exception(lambda error: getattr(error, "retryable",
False))``.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any


class LockError(Exception):
    """Any of these.

    ``holders``: who has the lock, as text. ``until``: when the first of them expires, if it is known.
    ``retry_after``: seconds after which asking again makes sense.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        asset: str = "",
        holders: Sequence[str] = (),
        until: datetime.datetime | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.asset = asset
        self.holders = tuple(holders)
        self.until = until
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), str(self), dict(self.__dict__))


class LockTimeout(LockError, TimeoutError):
    """Others held the lock for as long as you wanted to wait."""

    retryable = True


class LockDenied(LockError, PermissionError):
    """You may not lock this, or there is nothing of that name to lock. Asking again gives the same answer."""


class BackendUnavailable(LockError, ConnectionError):
    """Redis or the API server does not answer. Nothing is held, or what is held ends with its TTL."""

    retryable = True


class LockLost(LockError):
    """The lock ended before your work did: it was revoked, has expired, or could not be renewed in time."""

    retryable = True


class AlreadyHeld(LockError):
    """The very task that asks holds the lock already, and would wait for itself."""


def _rebuilt(kind: type[LockError], message: str, state: dict[str, Any]) -> LockError:
    error = kind(message)
    error.__dict__.update(state)
    return error
