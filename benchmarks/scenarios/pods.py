"""What thousands of pods that have no part in any lock cost those that have: nothing."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncGenerator

from assetlock.kube.resources import PODS, Object
from benchmarks.bench import NAMESPACE, Bench
from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage

PODS_BESIDE = 5000
AT_ONCE = 32
HANDOVERS = 60
_ACCOUNT = "default"


@scenario(seconds=180)
async def beside_pods(stage: Stage) -> AsyncGenerator[Row, None]:
    """A hand-over between locks that a pod holds, beside thousands of other pods and beside none.

    Both are taken as multiples of a raw Lease create from the same minute, as they can't be taken in turn.
    """
    async with stage.bench() as bench:
        await bench.make_asset("beside-pods")
        alone = await _hand_overs(bench, "alone")
        await _crowd(bench)
        beside = await _hand_overs(bench, "beside")
        yield Row(
            f"hand-over to a pod, {PODS_BESIDE} beside it",
            Samples("beside pods", beside),
            Samples("beside none", alone),
            "raw creates",
            1.1,
        )


async def _hand_overs(bench: Bench, worker: str) -> list[float]:
    """How long each takes, in raw Lease creates."""
    names = [await _ask_for_a_pod(bench, f"{worker}-{n}", priority=1000 - n) for n in range(HANDOVERS + 1)]
    await bench.acquired(names[0])
    taken, raw = [], []
    for present, following in itertools.pairwise(names):
        raw.append((await bench.raw_lease())[0])
        began = time.perf_counter()
        await bench.release(present)
        taken.append((await bench.acquired(following) - began) * 1000)
    await bench.release(names[-1])
    return [each / statistics.median(raw) for each in taken]


async def _ask_for_a_pod(bench: Bench, pod: str, *, priority: int) -> str:
    """A lock of a pod of its own."""
    uid = (await _make_pod(bench, pod))["metadata"]["uid"]
    username = f"system:serviceaccount:{NAMESPACE}:{_ACCOUNT}"
    holder = {"username": username, "podName": pod, "podUID": uid}
    lock = await bench.ask("beside-pods", wait="1h", priority=priority, holder=holder, bindTo="Pod")
    return str(lock["metadata"]["name"])


async def _crowd(bench: Bench) -> None:
    """Pods that wait for a node, as there is none."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def make(number: int) -> None:
        async with turns:
            await _make_pod(bench, f"unrelated-{number}")

    await asyncio.gather(*map(make, range(PODS_BESIDE)))


async def _make_pod(bench: Bench, name: str) -> Object:
    container = {"name": "main", "image": "none"}
    spec = {"serviceAccountName": _ACCOUNT, "containers": [container]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }
    return await bench.api.create(PODS, NAMESPACE, body)
