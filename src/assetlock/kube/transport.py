"""The one seam between the client and the wire.

`http.HttpTransport` speaks to a real API server; a simulator speaks to one in memory, in virtual time. A
transport sends each request exactly once: repeating is decided above it, where it is known what a request
does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from assetlock.kube.errors import KubeError, TransportError, Unreachable

__all__ = ["Reply", "StreamRefused", "Transport", "TransportError", "Unreachable"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class StreamRefused(KubeError):
    """The server answered a stream with something else than 200."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"stream refused: HTTP {reply.status}")
        self.reply = reply


class Transport(Protocol):
    """Sends requests, once each."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
    ) -> Reply:
        """Send a request and read its whole answer.

        Raises `TransportError` if there is no (whole) answer in time, and its kind `Unreachable` if the
        request never left.
        """
        ...

    def stream(
        self, path: str, *, params: Mapping[str, str], headers: Mapping[str, str], idle_timeout: float
    ) -> AsyncIterator[bytes]:
        """GET a stream and yield its complete lines; half a line at the end is dropped.

        Ends when the server ends it. Raises `StreamRefused` if the status is not 200, `TransportError` if the
        connection breaks or nothing at all arrives for `idle_timeout` seconds.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
