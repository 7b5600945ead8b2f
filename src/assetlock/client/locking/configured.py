"""Which backend is used where none is given: from the environment, once a process.

``ASSETLOCK_BACKEND`` says ``kubernetes`` or ``redis``. Without it: Redis if ``REDIS_HOST`` or
``REDIS_SENTINEL_HOSTS`` is set, else Kubernetes.
"""

from __future__ import annotations

import os
import threading

from assetlock.client.locking import process
from assetlock.client.locking.backend import Backend

_choosing = threading.Lock()
_chosen: Backend | None = None


def use(backend: Backend | None) -> None:
    """Use this one from now on; None: what the environment says."""
    global _chosen
    if backend is not None:
        process.remember(backend)
    _chosen = backend


def is_chosen() -> bool:
    """Whether `backend` has nothing to read any more."""
    return _chosen is not None


def backend() -> Backend:
    """The one in use. Raises `LockError` if it is not configured."""
    global _chosen
    if _chosen is None:
        with _choosing:
            if _chosen is None:
                _chosen = _from_environment()
    return _chosen


def _from_environment() -> Backend:
    named = os.environ.get("ASSETLOCK_BACKEND") or _guess()
    if named == "redis":
        from assetlock.client.backends.redis import RedisBackend

        return RedisBackend.from_environment()
    if named == "kubernetes":
        from assetlock.client.backends.kubernetes import KubernetesBackend

        return KubernetesBackend.from_environment()
    raise ValueError(f"ASSETLOCK_BACKEND is kubernetes or redis, not {named!r}")


def _guess() -> str:
    redis = os.environ.get("REDIS_HOST") or os.environ.get("REDIS_SENTINEL_HOSTS")
    return "redis" if redis else "kubernetes"
