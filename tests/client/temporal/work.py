"""Workflows and activities of the tests, which count what goes on in the Redis of ``TEST_REDIS_PORT``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from temporalio import activity, workflow
from temporalio.common import RetryPolicy

from assetlock import current_lock, needs_lock

PORT = "TEST_REDIS_PORT"
_INSIDE = """
local inside = redis.call('INCR', KEYS[1])
redis.call('SET', KEYS[1] .. ':most', math.max(inside, tonumber(redis.call('GET', KEYS[1] .. ':most') or 0)))
return inside
"""


def counters() -> redis.Redis:
    return redis.Redis(port=int(os.environ[PORT]), db=1, protocol=2)


@contextlib.contextmanager
def counted(key: str) -> Iterator[None]:
    client = counters()
    client.eval(_INSIDE, 1, key)
    try:
        yield
    finally:
        client.decr(key)
        client.close()


def token() -> int:
    held = current_lock()
    assert held is not None
    held.check()
    return held.token


@dataclass
class Plan:
    """So many of an activity at once, each with these arguments."""

    name: str
    args: list[Any]
    times: int = 1
    schedule_to_close: float | None = 60
    start_to_close: float | None = None
    heartbeat: float | None = None
    attempts: int = 0
    local: bool = False


@workflow.defn
class Fan:
    @workflow.run
    async def run(self, plan: Plan) -> list[Any]:
        start = workflow.start_local_activity if plan.local else workflow.start_activity
        options: dict[str, Any] = {
            "schedule_to_close_timeout": span(plan.schedule_to_close),
            "start_to_close_timeout": span(plan.start_to_close),
            "retry_policy": RetryPolicy(
                initial_interval=timedelta(milliseconds=50),
                maximum_interval=timedelta(milliseconds=200),
                maximum_attempts=plan.attempts,
            ),
        }
        if not plan.local:
            options["heartbeat_timeout"] = span(plan.heartbeat)
            options["cancellation_type"] = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        handles = [start(plan.name, args=plan.args, **options) for _ in range(plan.times)]
        return list(await asyncio.gather(*handles))


def span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


@activity.defn
@needs_lock("pool-{key}", max_locks=3)
async def in_loop(key: str) -> int:
    with counted(key):
        await asyncio.sleep(0.02)
        return token()


@activity.defn
@needs_lock("pool-{key}", max_locks=3)
def in_pool(key: str) -> int:
    with counted(key):
        time.sleep(0.02)
        return token()


@needs_lock("vm-{key}")
@activity.defn
async def other_order(key: str) -> int:
    return token()


@activity.defn
@needs_lock("vm-{key}", wait=0.2)
async def patient(key: str) -> int:
    return activity.info().attempt


@activity.defn
@needs_lock("vm-{key}")
async def failing(key: str) -> list[int]:
    """Fails once; gives the tokens of both attempts."""
    client = counters()
    client.rpush(key, token())
    if activity.info().attempt == 1:
        raise RuntimeError("on purpose")
    return [int(each) for each in client.lrange(key, 0, -1)]


@activity.defn
@needs_lock("vm-{key}", ttl=1)
async def endless_at_first(key: str) -> int:
    """Ends only when it is cancelled, at its first attempt."""
    attempt = activity.info().attempt
    counters().rpush(key, attempt)
    while attempt == 1:
        activity.heartbeat()
        await asyncio.sleep(0.05)
    return attempt


@activity.defn
@needs_lock("vm-{key}", ttl=2)
def blocking_at_first(key: str) -> int:
    """The same in a thread that nothing can stop."""
    attempt = activity.info().attempt
    counters().rpush(key, attempt)
    if attempt == 1:
        time.sleep(60)
    return attempt


@needs_lock("helper")
async def helper() -> None: ...


@activity.defn
async def with_helper(key: str) -> None:
    await helper()


class Fleet:
    def __init__(self, name: str) -> None:
        self.name = name

    @activity.defn
    @needs_lock("{self.name}-{key}")
    async def patch(self, key: str) -> list[str]:
        held = current_lock()
        assert held is not None
        return list(held.names)


@workflow.defn
class Locking:
    """A workflow whose own code calls something that needs a lock."""

    @workflow.run
    async def run(self) -> None:
        await helper()
