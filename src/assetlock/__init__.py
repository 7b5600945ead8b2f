"""Locks for things behind a Kubernetes API, enforced by the API server itself.

What programs use of it is here: `needs_lock`, `lock`, `AsyncLock`, `current_lock`, and the errors. It is loaded
when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assetlock.client.locking.chain import current_lock as current_lock
    from assetlock.client.locking.configured import use as use
    from assetlock.client.locking.decorator import needs_lock as needs_lock
    from assetlock.client.locking.errors import AlreadyHeld as AlreadyHeld
    from assetlock.client.locking.errors import BackendUnavailable as BackendUnavailable
    from assetlock.client.locking.errors import LockDenied as LockDenied
    from assetlock.client.locking.errors import LockError as LockError
    from assetlock.client.locking.errors import LockLost as LockLost
    from assetlock.client.locking.errors import LockTimeout as LockTimeout
    from assetlock.client.locking.held import AsyncHeld as AsyncHeld
    from assetlock.client.locking.held import Held as Held
    from assetlock.client.locking.locks import AsyncLock as AsyncLock
    from assetlock.client.locking.locks import Lock as Lock
    from assetlock.client.locking.locks import lock as lock

_ERRORS = ("AlreadyHeld", "BackendUnavailable", "LockDenied", "LockError", "LockLost", "LockTimeout")
_WHERE = {
    "AsyncHeld": "held",
    "AsyncLock": "locks",
    "Held": "held",
    "Lock": "locks",
    "current_lock": "chain",
    "lock": "locks",
    "needs_lock": "decorator",
    "use": "configured",
    **dict.fromkeys(_ERRORS, "errors"),
}

__all__ = [
    "AlreadyHeld",
    "AsyncHeld",
    "AsyncLock",
    "BackendUnavailable",
    "Held",
    "Lock",
    "LockDenied",
    "LockError",
    "LockLost",
    "LockTimeout",
    "current_lock",
    "lock",
    "needs_lock",
    "use",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"assetlock.client.locking.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
