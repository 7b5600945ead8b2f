"""One run: an operator that is killed again and again under load, then peace, and what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.errors import KubeError
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import ASSETLOCKS, CONFIG_MAPS
from tests.chaos.clients import NAMESPACE, person
from tests.chaos.cluster import Cluster, cluster
from tests.chaos.etcd import revisions
from tests.chaos.work import at_work
from tests.restarts.board import Board, watching
from tests.restarts.judge import Judge, Life, Verdict
from tests.restarts.load import CAPACITIES, Client

CONTROLLER = "controller-1"
CLIENTS_EACH = 4
PEACE = 120.0
"""Seconds at the end, in which everybody who waits is served and nobody new comes."""

_PROBE_EVERY = 0.2
_POLL = 0.05


@dataclasses.dataclass
class Outcome:
    """What happened. ``waiting`` were never served; ``writes`` are plain writes: when, and how long they took."""

    seed: str
    lives: list[Life]
    admission_kills: int
    waiting: list[str]
    writes: list[tuple[float, float]]
    verdict: Verdict

    def bound(self, done: float) -> float:
        """How long a lock may take to be granted on: five seconds, on a machine that does anything in time.

        Ten plain writes take about as long as a grant, so where writes are slow by then, so may grants be.
        """
        near = [took for at, took in self.writes if abs(done - at) < 10]
        return 5.0 + 10 * max(near, default=0.0)

    @property
    def complaints(self) -> list[str]:
        """All that is not as it must be."""
        late = [
            f"granted on after {delay:.1f} s" for at, delay in self.verdict.delays if delay > self.bound(at)
        ]
        return [*self.verdict.broken, *late, *(f"{name} was never served" for name in self.waiting)]


async def play(kills: int, seed: str) -> Outcome:
    """Kill the operator so many times, then judge."""
    async with cluster(controllers=(CONTROLLER,)) as running, watching(running) as board:
        await asyncio.to_thread(_prepare, running)
        lives, writes = [Life(time.time())], list[tuple[float, float]]()
        await _until_leading(running, lives[-1])
        async with _probing(running, writes):
            async with _load(running, board, seed):
                admission_kills = await _kill(running, kills, seed, lives)
            waiting = await _serve_all(running, board)
        history = await revisions(running, "/registry/")
    return Outcome(seed, lives, admission_kills, waiting, writes, Judge(CAPACITIES, lives).walk(history))


async def _kill(running: Cluster, kills: int, seed: str, lives: list[Life]) -> int:
    """Kill at random moments, mostly while it leads, sometimes before; now and then the webhooks with it."""
    rng, admission_kills = random.Random(f"{seed}/kills"), 0
    for _ in range(kills):
        leading = asyncio.create_task(_until_leading(running, lives[-1]))
        if rng.random() < 0.8:
            await leading
        await asyncio.sleep(rng.uniform(0, 3))
        leading.cancel()
        with_admission = rng.random() < 0.25
        await asyncio.gather(*map(running.kill, [CONTROLLER, *(["admission"] if with_admission else [])]))
        await asyncio.sleep(rng.uniform(0, 0.5))
        lives.append(Life(time.time()))
        started = [running.start(CONTROLLER)]
        if with_admission:
            admission_kills += 1
            started.append(running.start("admission"))
        await asyncio.gather(*started)
    await _until_leading(running, lives[-1])
    return admission_kills


async def _until_leading(running: Cluster, life: Life) -> None:
    while not await asyncio.to_thread(_leads, running.programs[CONTROLLER].ready_url or ""):  # noqa: ASYNC110
        await asyncio.sleep(_POLL)
    life.leading = life.leading or time.time()


def _leads(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.read() == b"leading")
    except (urllib.error.URLError, OSError):
        return False


@contextlib.asynccontextmanager
async def _load(running: Cluster, board: Board, seed: str) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as people:
        clients = [
            Client(
                await people.enter_async_context(person(running, f"{asset}-client-{number}")),
                board,
                asset,
                seed,
            )
            for asset in CAPACITIES
            for number in range(CLIENTS_EACH)
        ]
        async with at_work(client.run() for client in clients):
            yield


async def _serve_all(running: Cluster, board: Board) -> list[str]:
    """Release whatever is held until nobody is left; gives those whose turn never came."""
    api = Api(HttpTransport(load_config(running.access.kubeconfig)))
    deadline = time.monotonic() + PEACE
    try:
        while (left := board.unsettled()) and time.monotonic() < deadline:
            held = [lock["metadata"] for name, lock in board.locks.items() if board.state(name) == "Held"]
            for meta in held:
                with contextlib.suppress(KubeError):
                    await api.delete(
                        ASSETLOCKS,
                        NAMESPACE,
                        meta["name"],
                        uid=meta["uid"],
                        resource_version=meta["resourceVersion"],
                    )
            await board.until(lambda left=left: board.unsettled() != left, 2.0)  # type: ignore[misc]
    finally:
        await api.close()
    return left


@contextlib.asynccontextmanager
async def _probing(running: Cluster, writes: list[tuple[float, float]]) -> AsyncIterator[None]:
    task = asyncio.create_task(_probe(running, writes))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _probe(running: Cluster, writes: list[tuple[float, float]]) -> None:
    """How long plain writes take, all the while."""
    api = Api(HttpTransport(load_config(running.access.kubeconfig)))
    try:
        while True:
            began = time.monotonic()
            metadata = {"name": "probe", "namespace": NAMESPACE}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"at": str(began)}}
            await api.apply(CONFIG_MAPS, NAMESPACE, body)
            writes.append((time.time(), time.monotonic() - began))
            await asyncio.sleep(_PROBE_EVERY)
    finally:
        await api.close()


def _prepare(running: Cluster) -> None:
    kubectl = running.access.kubectl
    kubectl("create", "namespace", NAMESPACE)
    kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE, "--timeout=30s")
    kubectl("create", "configmap", "probe", "-n", NAMESPACE)
    for asset, capacity in CAPACITIES.items():
        kubectl("create", "configmap", asset, "--from-literal=value=", "-n", NAMESPACE)
        target = {"apiVersion": "v1", "kind": "ConfigMap", "name": asset}
        body = {
            "apiVersion": "assetlock.dev/v1alpha1",
            "kind": "Asset",
            "metadata": {"name": asset},
            "spec": {"type": "VM", "targets": [target], "capacity": capacity},
        }
        kubectl("create", "-f", "-", "-n", NAMESPACE, stdin=json.dumps(body))
        kubectl("wait", f"ast/{asset}", "--for=condition=Ready", "--timeout=30s", "-n", NAMESPACE)
