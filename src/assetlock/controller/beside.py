"""Work in a thread of its own, with event loops of its own, for as long as a task in this one runs."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeAlias

Stop: TypeAlias = "concurrent.futures.Future[None]"
"""Done when the work is to end. A thread can wait for it, and with `stopped` a task in any loop."""


async def stopped(stop: Stop) -> None:
    """Return when the work is to end."""
    await asyncio.shield(asyncio.wrap_future(stop))


async def run_beside(name: str, work: Callable[[Stop], None], *, stops_within: float) -> None:
    """Run ``work`` in a thread until it ends, and raise what it raises; cancelled, it has so many seconds to stop."""
    stop, ended = concurrent.futures.Future[None](), concurrent.futures.Future[None]()

    def run() -> None:
        try:
            work(stop)
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=run, name=name, daemon=True).start()
    try:
        await stopped(ended)
    finally:
        stop.set_result(None)
        await asyncio.wait([asyncio.create_task(stopped(ended))], timeout=stops_within)
