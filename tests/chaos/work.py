"""What goes on beside the trouble: the clients, and whoever else is at work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any


@contextlib.asynccontextmanager
async def at_work(people: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Let them all work inside the context; afterwards, raises what one of them failed with."""
    tasks = [asyncio.create_task(one) for one in people]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end
