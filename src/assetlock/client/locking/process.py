"""What a process has once: the renewer and a few threads for the blocking calls of coroutines. New after a fork."""

from __future__ import annotations

import concurrent.futures
import os
import weakref

from assetlock.client.locking.backend import Backend
from assetlock.client.locking.chores import Chores
from assetlock.client.locking.renewer import Renewer

THREADS = 16
"""So many calls of coroutines are on their way at once; none of them waits for a lock."""


class Process:
    """This process's own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.renewer = Renewer()
        self.chores = Chores()
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="assetlock")


_backends: weakref.WeakSet[Backend] = weakref.WeakSet()
_process = Process()


def current() -> Process:
    """The one of this process."""
    return _process


def remember(backend: Backend) -> None:
    """Tell the backend when the process was forked."""
    _backends.add(backend)


def _forked() -> None:
    global _process
    _process = Process()
    for backend in list(_backends):
        backend.forked()


os.register_at_fork(after_in_child=_forked)
