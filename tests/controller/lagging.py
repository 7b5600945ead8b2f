"""A connection whose watches can be held up, and go on line by line."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from tests.sim.client import Client


class Lagging:
    """Everything else goes through at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held = False
        self._let = asyncio.Semaphore(0)

    def hold(self) -> None:
        """From now on no line of a watch arrives that is not let through."""
        self._held = True

    def let(self, lines: int) -> None:
        """Let through so many of those that have come, and that come."""
        for _ in range(lines):
            self._let.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def stream(self, path: str, **arguments: Any) -> AsyncIterator[bytes]:
        """The lines of a watch."""
        async for line in self._client.stream(path, **arguments):
            if self._held:
                await self._let.acquire()
            yield line
