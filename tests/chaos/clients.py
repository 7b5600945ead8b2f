"""The clients: they acquire, write with their token, release, crash, oversleep, and some never ask.

Each is a user of its own. One that has lost an answer is done for, as something of it may yet arrive; another user
takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import ASSETLOCKS, CONFIG_MAPS
from assetlock.kube.transport import Reply, TransportError, Unreachable
from tests.chaos.cluster import Cluster
from tests.chaos.history import Grant, Operation

NAMESPACE = "chaos"
TTL = 5
WAIT = 30
_TIMEOUT = 3.0
_POLL = 0.4
_TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})


class AnswerLost(Exception):
    """The request may have arrived; nobody knows."""


class NotSent(Exception):
    """The request did nothing."""


@dataclass
class Log:
    """What all clients did."""

    operations: list[Operation] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)


@dataclass
class Person:
    """An authenticated user and its connection."""

    name: str
    transport: HttpTransport

    async def send(self, method: str, path: str, body: object = None) -> Reply:
        """One request, sent once. Raises NotSent or AnswerLost."""
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"Content-Type": f"application/{kind}", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            reply = await self.transport.request(
                method, path, params={}, headers=headers, body=data, timeout=_TIMEOUT
            )
        except Unreachable as error:
            raise NotSent from error
        except TransportError as error:
            raise AnswerLost from error
        if reply.status == 429 or (reply.status == 403 and not _by_the_fence(reply)):
            raise NotSent
        if reply.status >= 500:
            raise AnswerLost
        return reply


def _by_the_fence(reply: Reply) -> bool:
    """Whether a lock was the reason, and not an API server that has not read its RBAC yet."""
    return b"ValidatingAdmissionPolicy" in reply.body


@contextlib.asynccontextmanager
async def person(cluster: Cluster, name: str) -> AsyncIterator[Person]:
    """A user with all rights there are: the fence makes no difference between administrators and others."""
    path = await asyncio.to_thread(cluster.access.kubeconfig_for, name, "system:masters")
    transport = HttpTransport(load_config(cluster.kubeconfig(path, "clients to kube-apiserver")))
    try:
        yield Person(name, transport)
    finally:
        await transport.close()


class Client:
    """One place among those who want an asset. Its asset's target is the ConfigMap of the same name."""

    def __init__(self, cluster: Cluster, log: Log, asset: str, name: str, seed: str) -> None:
        self._cluster = cluster
        self._log = log
        self._asset = asset
        self._name = name
        self._random = random.Random(f"{seed}/{name}")
        self._values = itertools.count(1)

    async def run(self) -> None:
        """Live one life after the other."""
        for life in itertools.count(1):
            async with person(self._cluster, f"{self._name}.{life}") as someone:
                with contextlib.suppress(AnswerLost):
                    await self._live(someone)

    async def _live(self, someone: Person) -> None:
        for number in itertools.count(1):
            try:
                grant = await self._acquire(someone, f"{someone.name}-{number}")
                if grant is not None:
                    await self._work(someone, grant)
            except NotSent:
                await asyncio.sleep(_POLL)
            await asyncio.sleep(self._random.uniform(0, 2 * _POLL))

    async def _acquire(self, someone: Person, lock: str) -> Grant | None:
        spec = {"assetName": self._asset, "ttl": f"{TTL}s", "wait": f"{WAIT}s"}
        body = {
            "apiVersion": ASSETLOCKS.api_version,
            "kind": "AssetLock",
            "metadata": {"name": lock},
            "spec": spec,
        }
        call = time.monotonic_ns()
        grant = Grant(self._asset, self._name, lock, call, call + TTL * 1_000_000_000)
        self._log.grants.append(grant)
        created = await someone.send("POST", ASSETLOCKS.path(NAMESPACE), body)
        if created.status != 201:
            raise AssertionError(f"{lock}: {created.status} {created.body!r}")
        while True:
            await asyncio.sleep(_POLL)
            with contextlib.suppress(NotSent):
                found = await someone.send("GET", ASSETLOCKS.path(NAMESPACE, lock))
                status = json.loads(found.body).get("status", {})
                grant.token = status.get("fencingToken")
                if status.get("state") == "Held":
                    grant.told = time.monotonic_ns()
                    return grant
                if status.get("state") in _TERMINAL:
                    return None

    async def _work(self, someone: Person, grant: Grant) -> None:
        chance = self._random.random
        for _ in range(self._random.randint(2, 6)):
            await self._write(someone, grant.token or 0)
            if chance() < 0.3:
                await self._read(someone)
            await asyncio.sleep(self._random.uniform(0.05, 0.5))
        if chance() < 0.6:
            await self._release(someone, grant)
        elif chance() < 0.7:
            await asyncio.sleep(self._random.uniform(TTL, TTL + 4))
            await self._write(someone, grant.token or 0)
        else:
            raise AnswerLost

    async def _release(self, someone: Person, grant: Grant) -> None:
        grant.earliest_end = min(grant.earliest_end, time.monotonic_ns())
        deleted = await someone.send("DELETE", ASSETLOCKS.path(NAMESPACE, grant.lock))
        if deleted.status == 200:
            grant.released = time.monotonic_ns()

    async def _write(self, someone: Person, token: int) -> None:
        value = f"{token} {someone.name} {next(self._values)}"
        operation = Operation(self._asset, self._name, "write", time.monotonic_ns(), token, value)
        try:
            reply = await someone.send(
                "PATCH", CONFIG_MAPS.path(NAMESPACE, self._asset), {"data": {"value": value}}
            )
        except (AnswerLost, asyncio.CancelledError):
            self._log.operations.append(operation)
            raise
        operation.end = time.monotonic_ns()
        operation.result = "ok" if reply.status == 200 else "refused"
        assert reply.status in (200, 403, 423), f"{reply.status} {reply.body!r}"
        self._log.operations.append(operation)

    async def _read(self, someone: Person) -> None:
        call = time.monotonic_ns()
        try:
            reply = await someone.send("GET", CONFIG_MAPS.path(NAMESPACE, self._asset))
        except AnswerLost:
            return
        value = json.loads(reply.body)["data"]["value"]
        end = time.monotonic_ns()
        self._log.operations.append(Operation(self._asset, self._name, "read", call, value=value, end=end))


class Stranger(Client):
    """Writes now and then without asking, and looks at what is there."""

    async def _live(self, someone: Person) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0.5, 2))
            with contextlib.suppress(NotSent):
                await self._read(someone)
                await self._write(someone, 0)
