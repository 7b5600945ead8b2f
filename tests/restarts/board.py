"""What all clients see: the present state of every AssetLock, by a single watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import ASSETLOCKS
from tests.chaos.clients import NAMESPACE
from tests.chaos.cluster import Cluster

TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})


class Board:
    """AssetLocks by name. One that was deleted has the state ``Gone``."""

    def __init__(self) -> None:
        self.locks: dict[str, dict[str, Any]] = {}
        self._changed = asyncio.Condition()

    def state(self, name: str) -> str:
        """In a word; empty while the operator has not looked at it."""
        lock = self.locks.get(name)
        return str(lock.get("status", {}).get("state", "")) if lock else "Gone"

    def unsettled(self) -> list[str]:
        """The locks that wait, or hold."""
        return [name for name in self.locks if self.state(name) not in TERMINAL]

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for something; gives whether it came in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(holds)
                return True
        return False

    async def tell(self) -> None:
        """Have all who wait look again."""
        async with self._changed:
            self._changed.notify_all()

    def replace(self, items: list[dict[str, Any]], _version: str) -> None:
        """Take in a whole list."""
        self.locks = {item["metadata"]["name"]: item for item in items}

    def change(self, kind: str, lock: dict[str, Any]) -> None:
        """Take in one change."""
        if kind == "DELETED":
            self.locks.pop(lock["metadata"]["name"], None)
        else:
            self.locks[lock["metadata"]["name"]] = lock


@contextlib.asynccontextmanager
async def watching(cluster: Cluster) -> AsyncIterator[Board]:
    """A board that is kept up to date for as long as the block lasts."""
    board, api = Board(), Api(HttpTransport(load_config(cluster.access.kubeconfig)))

    def on_event(kind: str, lock: dict[str, Any]) -> None:
        board.change(kind, lock)
        told.append(asyncio.create_task(board.tell()))
        del told[:-100]

    told: list[asyncio.Task[None]] = []
    reflector = Reflector(api, ASSETLOCKS, NAMESPACE, on_replace=board.replace, on_event=on_event)
    task = asyncio.create_task(reflector.run())
    try:
        await reflector.until_synced(30)
        yield board
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()
