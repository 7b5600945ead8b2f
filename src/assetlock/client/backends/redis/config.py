"""Which Redis: one server, or what a Sentinel names as the master; from arguments or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

TIMEOUT = 2.0
"""Seconds for an answer; a script takes less than a millisecond."""

_TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class RedisConfig:
    """A Redis server, or with ``sentinels`` the master that they call ``service``. Passwords are never shown."""

    host: str = "localhost"
    port: int = 6379
    db: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: str | None = None
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = "mymaster"
    sentinel_username: str | None = None
    sentinel_password: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> RedisConfig:
        """``REDIS_HOST`` and its kin. ValueError for a port or number that is none."""
        return cls(
            host=environ.get("REDIS_HOST") or "localhost",
            port=_number(environ, "REDIS_PORT", 6379),
            db=_number(environ, "REDIS_DB", 0),
            username=environ.get("REDIS_USERNAME") or None,
            password=environ.get("REDIS_PASSWORD") or None,
            tls=environ.get("REDIS_TLS", "").lower() in _TRUE,
            ca_file=environ.get("REDIS_CA_FILE") or None,
            sentinels=_hosts(environ.get("REDIS_SENTINEL_HOSTS", "")),
            service=environ.get("REDIS_SENTINEL_SERVICE_NAME") or "mymaster",
            sentinel_username=environ.get("REDIS_SENTINEL_USERNAME") or None,
            sentinel_password=environ.get("REDIS_SENTINEL_PASSWORD") or None,
        )

    @property
    def shown(self) -> str:
        """Where it is, for messages."""
        if not self.sentinels:
            return f"Redis at {self.host}:{self.port}"
        return f"Redis {self.service} of the Sentinels {', '.join(f'{host}:{port}' for host, port in self.sentinels)}"

    def connect(self) -> Redis:
        """A client. It opens no connection yet, and repeats nothing by itself."""
        common = self._common()
        login: dict[str, Any] = {"db": self.db, "username": self.username, "password": self.password}
        if not self.sentinels:
            return Redis(host=self.host, port=self.port, **login, **common)
        own = {"username": self.sentinel_username, "password": self.sentinel_password}
        sentinels: Any = Sentinel  # it is not annotated
        found = sentinels(self.sentinels, sentinel_kwargs={**common, **own}, **login, **common)
        master: Redis = found.master_for(self.service)
        return master

    def _common(self) -> dict[str, Any]:
        common: dict[str, Any] = {
            "protocol": 2,
            "socket_timeout": TIMEOUT,
            "socket_connect_timeout": TIMEOUT,
            "socket_keepalive": True,
            "retry": Retry(NoBackoff(), 0),
        }
        if self.tls:
            common |= {"ssl": True, "ssl_ca_certs": self.ca_file}
        return common


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{name} is a number, not {text!r}")
    return int(text)


def _hosts(text: str) -> tuple[tuple[str, int], ...]:
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = part.rpartition(":")
        if not host:
            host, port = part, "26379"
        if not port.isdecimal():
            raise ValueError(f"REDIS_SENTINEL_HOSTS is like host:26379,other:26379, not {text!r}")
        found.append((host.strip("[]"), int(port)))
    return tuple(found)
