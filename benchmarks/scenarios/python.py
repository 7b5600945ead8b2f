"""What a lock costs a Python program, in Redis and in Kubernetes."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager

from redis import Redis
from tests.client import servers

from assetlock import needs_lock
from assetlock.client.api import ASSETS, LEASES, Api, load_config
from assetlock.client.backends.kubernetes import KubernetesBackend
from assetlock.client.backends.redis import RedisBackend, RedisConfig
from assetlock.client.locking.backend import Backend
from assetlock.client.locking.locks import lock
from benchmarks.bench import NAMESPACE
from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage

REDIS_ROUNDS = 2000
HAND_OVERS = 200
CLUSTER_ROUNDS = 100
_numbers = itertools.count()


@scenario(seconds=60)
async def python_redis(stage: Stage) -> AsyncGenerator[Row, None]:  # noqa: ARG001
    """Against redis-py's own lock, in turn with it; and how soon a waiter gets what is released."""
    with servers.redis_server() as server:
        backend = RedisBackend(RedisConfig(port=server.port), scope="bench")
        yield await asyncio.to_thread(_beside_redis_py, backend, Redis(port=server.port))
        taken = await asyncio.to_thread(_hand_overs, backend)
    yield Row("hand-over, Redis", Samples("hand-over", taken), Samples("20 ms", [20.0]), "ms", 1)


@scenario(seconds=120)
async def python_kubernetes(stage: Stage) -> AsyncGenerator[Row, None]:
    """An empty function, with and without a target, in turn with raw Lease creates by the same client."""
    config = load_config(stage.cluster.kubeconfig)
    backend, api = KubernetesBackend(config, namespace=NAMESPACE, scope="bench"), Api(config)
    async with stage.bench() as bench:
        await bench.make_asset("py-fenced")
    body = {
        "apiVersion": ASSETS.api_version,
        "kind": ASSETS.kind,
        "metadata": {"name": "py-bare"},
        "spec": {},
    }
    api.create(ASSETS.path(NAMESPACE), body)
    for what, asset in (("no target", "py-bare"), ("fenced", "py-fenced")):
        yield await asyncio.to_thread(_in_turn, f"needs_lock, Kubernetes, {what}", asset, backend, api)


def _beside_redis_py(backend: RedisBackend, client: Redis) -> Row:
    theirs = client.lock("bench", timeout=60)
    ours, raw, empty = [], [], _empty("bench", backend)
    for _ in range(REDIS_ROUNDS):
        ours.append(_taken(empty))
        raw.append(_taken(lambda: _enter(theirs)))
    return Row("needs_lock, Redis", Samples("ours", ours), Samples("redis-py Lock", raw), "ms", 1.8)


def _in_turn(what: str, asset: str, backend: Backend, api: Api) -> Row:
    empty = _empty(asset, backend)
    ours, raw = [], []
    for _ in range(CLUSTER_ROUNDS):
        raw.append(_taken(lambda: _raw_lease(api)))
        ours.append(_taken(empty))
        time.sleep(0.05)  # the operator takes the stamp off; who comes at once waits for that
    return Row(what, Samples("ours", ours), Samples("raw Lease create", raw), "ms", 6)


def _empty(name: str, backend: Backend) -> Callable[[], None]:
    @needs_lock(name, ttl=60, backend=backend)
    def nothing() -> None:
        pass

    return nothing


def _enter(theirs: AbstractContextManager[object]) -> None:
    with theirs:
        pass


def _taken(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def _hand_overs(backend: RedisBackend) -> list[float]:
    """From the beginning of the release until the waiter is inside."""
    taken = []
    for _ in range(HAND_OVERS):
        first = lock("contended", ttl=60, backend=backend).acquire()
        inside: list[float] = []

        def wait(inside: list[float] = inside) -> None:
            with lock("contended", ttl=60, wait=60, backend=backend):
                inside.append(time.perf_counter())

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.02)  # it has asked, and waits
        began = time.perf_counter()
        first.release()
        waiter.join()
        taken.append((inside[0] - began) * 1000)
    return taken


def _raw_lease(api: Api) -> None:
    body = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": f"raw-py-{next(_numbers)}"},
        "spec": {"holderIdentity": "bench", "leaseDurationSeconds": 60},
    }
    api.create(LEASES.path(NAMESPACE), body)
