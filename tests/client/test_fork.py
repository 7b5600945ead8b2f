"""A fork while locks are held: they stay the parent's."""

from __future__ import annotations

import os
import threading

import pytest

from assetlock import LockLost, current_lock, lock
from assetlock.client.backends.redis import RedisBackend


def in_child(check: object) -> int:
    """Fork, run it in the child, and give the exit code: 0 if it returned true."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if check() else 2  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_handle_is_no_good_in_a_forked_child_and_stays_good_in_the_parent(backend: RedisBackend) -> None:
    with lock("vm-1", backend=backend) as held:

        def check() -> bool:
            with pytest.raises(LockLost, match="process that forked"):
                held.check()
            with pytest.raises(LockLost):
                held.release()
            return not held.is_current() and current_lock() is None

        assert in_child(check) == 0
        held.check()
        assert held.is_current()


def test_a_child_leaves_the_block_without_releasing_the_parents_lock(backend: RedisBackend) -> None:
    def check() -> bool:
        with pytest.raises(LockLost, match="process that forked"):
            block.__exit__(None, None, None)
        return True

    block = lock("vm-1", backend=backend)
    with block as held:
        assert in_child(check) == 0
        assert held.is_current()


def test_a_child_has_locks_and_a_renewer_of_its_own(backend: RedisBackend) -> None:
    def check() -> bool:
        with lock("vm-2", ttl=1, backend=backend) as own:
            lost = own.lost.wait(1.5)
            return not lost and own.is_current() and len(threading.enumerate()) == 2

    with lock("vm-1", ttl=1, backend=backend) as held:
        assert in_child(check) == 0
        assert held.is_current()
