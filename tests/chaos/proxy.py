"""A way between two processes that can be cut, and made slow. It passes bytes on, so TLS goes through it."""

from __future__ import annotations

import asyncio
import contextlib

LOOPBACK = "127.0.0.1"
_CHUNK = 65_536


class Proxy:
    """Listens on a port of its own for connections to another."""

    def __init__(self, port: int, to: int) -> None:
        self.port = port
        self.delay = 0.0
        self._to = to
        self._cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where to reach the other side, through here."""
        return f"https://{LOOPBACK}:{self.port}"

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._connected, LOOPBACK, self.port)

    async def stop(self) -> None:
        """Close everything."""
        self.cut()
        if self._server is not None:
            self._server.close()

    def cut(self) -> None:
        """Break all connections, and those to come."""
        self._cut = True
        for writer in list(self._open):
            writer.transport.abort()

    def mend(self) -> None:
        """Let everything through again, at once."""
        self._cut = False
        self.delay = 0.0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if not self._cut:
                await self._joined(reader, writer)
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOOPBACK, self._to)
        self._open.add(back)
        ways = [asyncio.create_task(self._pass(reader, back)), asyncio.create_task(self._pass(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._open.discard(back)
            back.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
