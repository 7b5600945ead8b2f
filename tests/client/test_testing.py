"""What other programs' tests use: locks in memory, which do what the test says."""

from __future__ import annotations

import asyncio

import pytest

from assetlock import AsyncLock, BackendUnavailable, LockLost, LockTimeout, lock, needs_lock
from assetlock.testing import FakeLocks


@needs_lock("vm-{vm}", wait=0)
def patch(vm: str) -> str:
    return f"patched {vm}"


def test_a_program_locks_in_memory() -> None:
    with FakeLocks() as locks:
        assert patch("1") == "patched 1"
        assert locks.taken == ["vm-1"]
        assert locks.holders("vm-1") == []


def test_somebody_else_holds_what_the_test_says() -> None:
    with FakeLocks() as locks:
        locks.hold("vm-1", by="bob")
        with pytest.raises(LockTimeout, match="held by bob"):
            patch("1")
        locks.free("vm-1")
        patch("1")


async def test_a_lock_is_lost_when_the_test_says() -> None:
    with FakeLocks() as locks:
        with pytest.raises(LockLost, match="revoked by carol"):
            async with AsyncLock("vm-1"):
                locks.revoke("vm-1", by="carol")
                await asyncio.sleep(60)
        with pytest.raises(LockLost, match="expired"), lock("vm-1"):
            locks.expire("vm-1")


def test_nothing_answers_when_the_test_says() -> None:
    with FakeLocks() as locks:
        locks.down = True
        with pytest.raises(BackendUnavailable):
            patch("1")


async def test_a_waiter_gets_what_is_freed() -> None:
    with FakeLocks() as locks:
        locks.hold("vm-1")
        waiting = asyncio.create_task(AsyncLock("vm-1", wait=60).acquire())
        await asyncio.sleep(0)
        locks.free("vm-1")
        await (await waiting).release()
