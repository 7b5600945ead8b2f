from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from assetlock.client.backends.redis import RedisBackend, RedisConfig
from tests.client import servers


@pytest.fixture(scope="session")
def redis_server() -> Iterator[servers.Server]:
    with servers.redis_server() as server:
        yield server


@pytest.fixture
def backend(redis_server: servers.Server) -> RedisBackend:
    """Locks in a real Redis, in a scope that nobody else uses."""
    return RedisBackend(RedisConfig(port=redis_server.port), scope=f"t-{uuid.uuid4().hex[:8]}")
