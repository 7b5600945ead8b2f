"""The troubles: processes killed and stopped, ways cut and slow, clocks and certificates wrong."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from assetlock.admission import certificates, tls
from assetlock.core import names
from assetlock.dev.errors import StartFailed
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import SECRETS
from tests.chaos.cluster import CONTROLLERS, PAIRS, PROCESSES, Cluster
from tests.chaos.proxy import LOOPBACK

DELAY = 0.3
HOUR = 3600.0
CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of it. Entering makes it, leaving ends it, after so many seconds."""

    name: str
    seconds: tuple[float, float]
    make: Callable[[Cluster], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class Fault:
    """One that was made, on the clock that the clients' history is on."""

    name: str
    began: int
    ended: int


def troubles() -> list[Trouble]:
    """All there are. Stops outlast the leader's lease (3 s) and the webhooks' timeout (2 s)."""
    found = [Trouble(f"kill {name}", (0.5, 3), _killed(name)) for name in PROCESSES]
    found += [Trouble(f"stop {name}", (5, 8), _stopped(name)) for name in PROCESSES]
    found += [Trouble(f"cut {pair}", (3, 6), _cut(pair)) for pair in PAIRS]
    found += [Trouble(f"slow {pair}", (4, 8), _slow(pair)) for pair in PAIRS]
    found += [
        Trouble(f"{CLOCK} an hour ahead", (5, 8), _clock_off(HOUR)),
        Trouble(f"{CLOCK} an hour behind", (5, 8), _clock_off(-HOUR)),
        Trouble("certificate expired", (0.5, 1), _certificate_expired),
    ]
    return found


async def make_trouble(cluster: Cluster, seconds: float, seed: str, made: list[Fault]) -> None:
    """One trouble after the other, each kind once before any comes again, with a rest between them."""
    rng, until, left = random.Random(f"{seed}/troubles"), time.monotonic() + seconds, list[Trouble]()
    while time.monotonic() < until:
        if not left:
            left = troubles()
            rng.shuffle(left)
        trouble = left.pop()
        fault = Fault(trouble.name, time.monotonic_ns(), 0)
        made.append(fault)
        async with trouble.make(cluster):
            await asyncio.sleep(rng.uniform(*trouble.seconds))
        fault.ended = time.monotonic_ns()
        await asyncio.sleep(rng.uniform(1, 4))


def _killed(name: str) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        await cluster.kill(name)
        yield
        await _started(cluster, name)

    return make


def _stopped(name: str) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        cluster.suspend(name)
        try:
            yield
        finally:
            cluster.resume(name)

    return make


def _cut(pair: str) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        cluster.proxies[pair].cut()
        try:
            yield
        finally:
            cluster.proxies[pair].mend()

    return make


def _slow(pair: str) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        cluster.proxies[pair].delay = DELAY
        try:
            yield
        finally:
            cluster.proxies[pair].mend()

    return make


def _clock_off(seconds: float) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    """Both controllers come up on machines with a wrong clock, while the webhooks' is right."""

    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        await _replaced(cluster, skew=seconds)
        yield
        await _replaced(cluster, skew=0.0)

    return make


async def _replaced(cluster: Cluster, *, skew: float) -> None:
    for name in CONTROLLERS:
        await cluster.kill(name)
        cluster.programs[name] = await asyncio.to_thread(cluster.operator, name, skew=skew)
    await asyncio.gather(*(_started(cluster, name) for name in CONTROLLERS))


async def _started(cluster: Cluster, name: str) -> None:
    """Start it; one that ends at once, as something it needs is still amiss, is started again by and by."""
    with contextlib.suppress(StartFailed):
        await cluster.start(name)


@asynccontextmanager
async def _certificate_expired(cluster: Cluster) -> AsyncIterator[None]:
    """The webhooks' certificate ran out while their process was down; it has to see to that by itself."""
    long_ago = datetime.datetime.now(datetime.UTC) - certificates.SERVING_LIFE - datetime.timedelta(days=1)
    await cluster.kill("admission")
    api = Api(HttpTransport(load_config(cluster.access.kubeconfig)))
    try:
        present = await api.get(SECRETS, names.OPERATOR_NAMESPACE, tls.SECRET)
        expired = certificates.issue([LOOPBACK], long_ago)
        contents = {
            "ca.crt": expired.trusted,
            "ca.key": expired.ca_key,
            "tls.crt": expired.certificate,
            "tls.key": expired.key,
        }
        present["data"] |= {key: base64.b64encode(pem.encode()).decode() for key, pem in contents.items()}
        await api.replace(SECRETS, names.OPERATOR_NAMESPACE, tls.SECRET, present)
    finally:
        await api.close()
    yield
    await _started(cluster, "admission")
