"""The block that a coroutine is in: cancelled when its lock is lost, as `asyncio.timeout` does at its end."""

from __future__ import annotations

import asyncio
import contextlib

from assetlock.client.locking.errors import LockLost
from assetlock.client.locking.term import Term


class Body:
    """The running task, from now until it leaves the block."""

    def __init__(self, term: Term) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a lock is entered by a task")
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._cancelling = task.cancelling()
        self._cancelled = False
        self._left = False
        term.when_lost(self._lost)

    def _lost(self, loss: LockLost) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._cancel, str(loss))

    def _cancel(self, why: str) -> None:
        if not self._left:
            self._cancelled = True
            self._task.cancel(why)

    def leave(self, error: BaseException | None) -> bool:
        """The task leaves the block; whether it does so because it was cancelled here, and by nobody else."""
        self._left = True
        if not self._cancelled:
            return False
        others = self._task.uncancel() > self._cancelling
        return isinstance(error, asyncio.CancelledError) and not others
