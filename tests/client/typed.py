"""How a typed program uses the client: ``mypy --strict`` accepts all of this, and knows what it is."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from assetlock import AsyncHeld, AsyncLock, Held, LockTimeout, lock, needs_lock


class Machine:
    id: str = "1"


@needs_lock("vm-{vm_id}", ttl="5m", wait=datetime.timedelta(minutes=1))
def patch(vm_id: str, *, force: bool = False) -> int:
    return 0


@needs_lock(lambda machine: str(machine.id), max_locks=5)
async def restart(machine: Machine) -> str:
    return machine.id


async def main() -> None:
    assert_type(patch("1", force=True), int)
    coroutine: Callable[[Machine], Coroutine[Any, Any, str]] = restart
    assert_type(await coroutine(Machine()), str)
    patch(1)  # type: ignore[arg-type]
    patch("1", fast=True)  # type: ignore[call-arg]
    with lock("a", "b") as held:
        assert_type(held, Held)
        assert_type(held.tokens, dict[str, int])
    async with AsyncLock("a") as async_held:
        assert_type(async_held, AsyncHeld)
    assert_type(lock("a").try_acquire(), Held | None)
    try:
        lock("a").acquire(wait=0)
    except LockTimeout as error:
        assert_type(error.retry_after, float | None)
