"""The troubles: processes killed and stopped, ways cut and slow, clocks wrong, what proves an identity expired."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from tests.chaos import expiry
from tests.chaos.cluster import CONTROLLERS, OPERATOR, PAIRS, PROCESSES, Cluster

CONTROLLER_PAIRS = [pair for pair in PAIRS if pair.startswith("controller-")]

DELAY = 0.3
LATE = 3.0
"""Seconds by which answers are late when the API server is as good as overloaded."""

SHARE = 0.05
"""Of a core, for a process that hardly gets any."""

BURST = 0.4
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
        Trouble(f"slow {pair} by {LATE:.0f} s", (15, 20), _slow(pair, LATE)) for pair in CONTROLLER_PAIRS
    ]
    found += [Trouble(f"{name} on a twentieth of a core", (20, 30), _starved(name)) for name in CONTROLLERS]
    found.append(Trouble("stop etcd for long", (20, 22), _stopped("etcd")))
    for where, parts in (("controllers", CONTROLLERS), ("webhooks", ("admission",))):
        for how, seconds in (("ahead", HOUR), ("behind", -HOUR)):
            found.append(Trouble(f"{CLOCK} of the {where} an hour {how}", (5, 8), _clock_off(parts, seconds)))
    found += [
        Trouble("expired certificate of the webhooks", (0.5, 1), expiry.of_webhooks),
        Trouble("expired certificate of kube-apiserver", (4, 8), expiry.of_apiserver),
        Trouble("expired certificate of etcd", (4, 8), expiry.of_etcd),
    ]
    found += [Trouble(f"expired token of {part}", (12, 15), expiry.of_token(part)) for part in OPERATOR]
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
        await cluster.start_if_it_can(name)

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


def _starved(name: str) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        holding = asyncio.create_task(_hold(cluster, name))
        try:
            yield
        finally:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)
            cluster.resume(name)

    return make


async def _hold(cluster: Cluster, name: str) -> None:
    """Let the process run for so much of the time, in bursts."""
    while True:
        cluster.resume(name)
        await asyncio.sleep(SHARE * BURST)
        cluster.suspend(name)
        await asyncio.sleep((1 - SHARE) * BURST)


def _slow(pair: str, delay: float = DELAY) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        cluster.proxies[pair].delay = delay
        try:
            yield
        finally:
            cluster.proxies[pair].mend()

    return make


def _clock_off(
    parts: Sequence[str], seconds: float
) -> Callable[[Cluster], AbstractAsyncContextManager[None]]:
    """These processes come up on machines with a wrong clock, while the others' is right."""

    @asynccontextmanager
    async def make(cluster: Cluster) -> AsyncIterator[None]:
        await _replaced(cluster, parts, skew=seconds)
        yield
        await _replaced(cluster, parts, skew=0.0)

    return make


async def _replaced(cluster: Cluster, parts: Sequence[str], *, skew: float) -> None:
    for name in parts:
        await cluster.kill(name)
        cluster.programs[name] = await asyncio.to_thread(cluster.operator, name, skew=skew)
    await asyncio.gather(*(cluster.start_if_it_can(name) for name in parts))
