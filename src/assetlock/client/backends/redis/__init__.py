"""Locks in Redis (extra ``redis``): one server, or a master that Sentinels name, with or without TLS."""

from assetlock.client.backends.redis.backend import RedisBackend
from assetlock.client.backends.redis.config import RedisConfig

__all__ = ["RedisBackend", "RedisConfig"]
