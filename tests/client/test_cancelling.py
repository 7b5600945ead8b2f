"""Coroutines that are cancelled at any await of acquiring, renewing and releasing leave nothing behind.

``CANCEL_ROUNDS=10000`` tries more of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import random
import time

import pytest

from assetlock import AsyncLock
from assetlock.client.backends.redis import RedisBackend
from tests.client.servers import Server

ROUNDS = int(os.environ.get("CANCEL_ROUNDS", "300"))
STEPS = 40
"""More turns of the event loop than the work below takes when nobody is in its way."""


async def work(backend: RedisBackend) -> None:
    async with AsyncLock("vm-1", "vm-2", ttl=60, wait=30, backend=backend) as held:
        await held.extend(120)
        await held.is_current()


async def cancelled_after(steps: int, pause: float, backend: RedisBackend) -> None:
    """Let it go so far, by turns of the loop or by time, and cancel it."""
    task = asyncio.get_running_loop().create_task(work(backend), context=contextvars.Context())
    if pause:
        await asyncio.sleep(pause)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    if random.random() < 0.2:
        await asyncio.sleep(0)
        task.cancel()  # also while it cleans up
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.timeout(3600)
async def test_whoever_is_cancelled_leaves_nothing_behind(
    backend: RedisBackend, redis_server: Server
) -> None:
    for number in range(ROUNDS):
        steps, pause = number % STEPS, random.choice((0, 0, random.uniform(0, 0.006)))
        await asyncio.gather(
            cancelled_after(steps, pause, backend), cancelled_after(STEPS - steps, pause, backend)
        )
    pattern = f"assetlock:{{{backend._scope}:*}}:[0-9]*"
    deadline = time.monotonic() + 30
    while left := list(redis_server.client().scan_iter(pattern)):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.05)
    async with AsyncLock("vm-1", "vm-2", wait=0, backend=backend):
        pass
