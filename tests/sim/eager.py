"""Coroutines that mostly have nothing to wait for: run at once, and as a task only from where they do wait."""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any


def start(coroutine: Coroutine[Any, Any, None], *, name: str) -> "asyncio.Task[None] | None":
    """Run it up to its first wait; the task that does the rest, if there is any."""
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return None
    return asyncio.get_running_loop().create_task(_finish(coroutine, awaited), name=name)


async def _finish(coroutine: Coroutine[Any, Any, None], awaited: Any) -> None:
    await _rest(coroutine, awaited)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """Yield what it waits for, beginning with what it waits for already."""
    try:
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(sent)
    except StopIteration:
        return
