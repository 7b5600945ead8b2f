"""What is measured. Both sides of each ratio are taken in turn, so that a slow moment falls on both."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from assetlock.kube.resources import ASSETLOCKS
from benchmarks.bench import NAMESPACE, Bench
from benchmarks.rows import Row, Samples

ROUNDS = 100
CLIENTS = 16
CONTENDERS = 100
SECONDS = 8.0
SHORT_LINE, LONG_LINE = 20, 2000
HANDOVERS = 15


async def grant(bench: Bench) -> Row:
    """From creating an AssetLock until its client sees it acquired, one at a time."""
    await bench.make_asset("grant")
    taken, raw = [], []
    for _ in range(ROUNDS):
        raw.append((await bench.raw_lease())[0])
        began = time.perf_counter()
        lock = await bench.ask("grant", wait="1m")
        taken.append((await bench.acquired(lock["metadata"]["name"]) - began) * 1000)
        await bench.release(lock["metadata"]["name"])
    return Row("grant, one client", Samples("grant", taken), Samples("raw Lease create", raw), "ms", 10)


async def throughput(bench: Bench) -> Row:
    """Whole lives of locks a second, many clients on different assets, against pairs of raw Lease writes."""
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
    return Row(
        f"lock + release, {CLIENTS} clients",
        Samples("locks", rates["locks"]),
        Samples("raw Lease create + delete", rates["pairs"]),
        "/s",
        0.1,
        "at least",
    )


async def handover(bench: Bench) -> Row:
    """From a holder's release until the next in line sees its lock, with many in line; none may be lost."""
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
    return Row(
        f"hand-over, {CONTENDERS} contenders",
        Samples("hand-over", taken),
        Samples("raw Lease create", raw),
        "ms",
        12,
    )


async def long_line(bench: Bench) -> Row:
    """A hand-over with thousands in line against one with a few: a line must not slow down who serves it."""
    lines = {"short": SHORT_LINE, "long": LONG_LINE}
    names: dict[str, list[str]] = {}
    for asset, length in lines.items():
        await bench.make_asset(asset)
        # By falling priority, so that it is known who is next: equals within one second go by UID.
        asked = [await bench.ask(asset, wait="2h", priority=1000 - n) for n in range(length)]
        names[asset] = [lock["metadata"]["name"] for lock in asked]
        await bench.acquired(names[asset][0])
    taken: dict[str, list[float]] = {"short": [], "long": []}
    for turn in range(HANDOVERS - 1):
        for asset, line in names.items():
            began = time.perf_counter()
            await bench.release(line[turn])
            taken[asset].append((await bench.acquired(line[turn + 1]) - began) * 1000)
    return Row(
        f"hand-over, {LONG_LINE} in line",
        Samples("long line", taken["long"]),
        Samples(f"hand-over, {SHORT_LINE} in line", taken["short"]),
        "ms",
        2,
    )


async def unlocked_write(bench: Bench, plain: Bench) -> Row:
    """A write to an object that nobody locks, against one in a cluster that has nothing of ours."""
    await bench.make_asset("unlocked")
    await plain.make_configmap("unlocked")
    taken, raw = [], []
    for _ in range(3 * ROUNDS):
        raw.append(await plain.patch("unlocked"))
        taken.append(await bench.patch("unlocked"))
    return Row("unlocked write", Samples("installed", taken), Samples("cluster without us", raw), "ms", 1.1)


@contextlib.asynccontextmanager
async def watching(bench: Bench) -> AsyncIterator[None]:
    """Have acquisitions noted inside the context."""
    task = asyncio.create_task(bench.watch())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


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
