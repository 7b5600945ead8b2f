"""When a request may be sent again, and after how long.

A read may be repeated after anything that passes. A write may be repeated only if the server surely did not
act: it said so (429), or the request never left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assetlock.kube.errors import (
    ApiError,
    KubeError,
    ServerError,
    TooManyRequests,
    TransportError,
    Unreachable,
)

TRIES: int = 5
_PASSING_STATUSES: frozenset[int] = frozenset({429, 500, 502, 503, 504})
_LONGEST_RETRY_AFTER: float = 30.0


def may_repeat_read(error: KubeError) -> bool:
    """Whether a read that ended so may succeed when it is repeated."""
    if isinstance(error, ApiError):
        return error.status in _PASSING_STATUSES
    return isinstance(error, TransportError)


def may_repeat_write(error: KubeError) -> bool:
    """Whether a write that ended so was surely not done."""
    return isinstance(error, TooManyRequests | Unreachable)


def is_outcome_unknown(error: KubeError) -> bool:
    """Whether a write that ended so may have been done nevertheless."""
    if isinstance(error, Unreachable):
        return False
    return isinstance(error, TransportError | ServerError)


def delays(random: Callable[[], float], *, first: float = 0.1, longest: float = 5.0) -> Iterator[float]:
    """Endless pauses, each up to twice the one before, spread between half and all of it."""
    pause = first
    while True:
        yield pause * (0.5 + random() / 2)
        pause = min(pause * 2, longest)


def pause_after(error: KubeError, backoff: float) -> float:
    """How long to wait: what the server asked for (within reason), or the backoff if that is longer."""
    asked = error.retry_after if isinstance(error, ApiError) else None
    return max(backoff, min(asked or 0.0, _LONGEST_RETRY_AFTER))
