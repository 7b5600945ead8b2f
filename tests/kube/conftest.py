import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from assetlock.kube.api import Api
from assetlock.kube.config import ClusterConfig
from assetlock.kube.http import HttpTransport

from .servers import Server

Connect = Callable[..., Api]


@pytest.fixture
def pauses() -> list[float]:
    """How long the client would have waited, in order; it does not really wait."""
    return []


@pytest.fixture
async def connect(pauses: list[float]) -> AsyncIterator[Connect]:
    """Connects a client to a server; closed at the end of the test."""

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with contextlib.AsyncExitStack() as stack:

        def connected(server: Server, *, timeout: float = 5.0, **config: Any) -> Api:
            transport = HttpTransport(ClusterConfig(server.url, **config))
            api = Api(transport, sleep=sleep, timeout=timeout)
            stack.push_async_callback(api.close)
            return api

        yield connected
