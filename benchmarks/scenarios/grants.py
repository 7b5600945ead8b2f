"""What a lock costs: its grant, its hand-over, and many of them at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from assetlock.kube.resources import ASSETLOCKS
from benchmarks.bench import NAMESPACE
from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage

ROUNDS = 100
CLIENTS = 16
CONTENDERS = 100
SECONDS = 8.0


@scenario(seconds=60)
async def grant(stage: Stage) -> AsyncGenerator[Row, None]:
    """From creating an AssetLock until its client sees it acquired, one at a time."""
    taken, raw = [], []
    async with stage.bench() as bench:
        await bench.make_asset("grant")
        for _ in range(ROUNDS):
            raw.append((await bench.raw_lease())[0])
            began = time.perf_counter()
            lock = await bench.ask("grant", wait="1m")
            taken.append((await bench.acquired(lock["metadata"]["name"]) - began) * 1000)
            await bench.release(lock["metadata"]["name"])
    yield Row("grant, one client", Samples("grant", taken), Samples("raw Lease create", raw), "ms", 10)


@scenario(seconds=90)
async def throughput(stage: Stage) -> AsyncGenerator[Row, None]:
    """Whole lives of locks a second, many clients on different assets, against pairs of raw Lease writes."""
    async with stage.bench() as bench:
        for number in range(CLIENTS):
            await bench.make_asset(f"many-{number}")

        async def live(number: int) -> None:
            lock = await bench.ask(f"many-{number}", wait="1m")
            await bench.acquired(lock["metadata"]["name"])
            await bench.release(lock["metadata"]["name"])

        async def pair(_: int) -> None:
            await bench.raw_lease()

        rates: dict[str, list[float]] = {"locks": [], "pairs": []}
        for _ in range(3):
            rates["pairs"].append(await _rate(pair))
            rates["locks"].append(await _rate(live))
    yield Row(
        f"lock + release, {CLIENTS} clients",
        Samples("locks", rates["locks"]),
        Samples("raw Lease create + delete", rates["pairs"]),
        "/s",
        0.1,
        "at least",
    )


@scenario(seconds=90)
async def handover(stage: Stage) -> AsyncGenerator[Row, None]:
    """From a holder's release until the next in line sees its lock, with many in line; none may be lost."""
    async with stage.bench() as bench:
        await bench.make_asset("contended")
        names = {(await bench.ask("contended", wait="30m"))["metadata"]["name"] for _ in range(CONTENDERS)}
        current, _ = await bench.next_acquired(names)
        taken, raw = [], []
        while names := names - {current}:
            raw.append((await bench.raw_lease())[0])
            began = time.perf_counter()
            await bench.release(current)
            current, seen = await bench.next_acquired(names)
            taken.append((seen - began) * 1000)
        await bench.release(current)
        left = await bench.api.list(ASSETLOCKS, NAMESPACE)
        lost = [o["metadata"]["name"] for o in left.items if o["spec"]["assetName"] == "contended"]
        if lost:
            raise RuntimeError(f"waiters were left over: {lost}")
    yield Row(
        f"hand-over, {CONTENDERS} contenders",
        Samples("hand-over", taken),
        Samples("raw Lease create", raw),
        "ms",
        12,
    )


async def _rate(once: Callable[[int], Awaitable[None]]) -> float:
    deadline = time.perf_counter() + SECONDS
    done = 0

    async def client(number: int) -> None:
        nonlocal done
        while time.perf_counter() < deadline:
            await once(number)
            done += 1

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return done / (time.perf_counter() - began)
