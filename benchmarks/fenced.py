"""What the fence costs its holder, among a thousand locked objects and while strangers knock."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Sequence

from assetlock.kube.errors import Locked
from benchmarks.bench import Bench
from benchmarks.rows import Row, Samples

ASSETS = 20
TARGETS_EACH = 50
WRITES = 600
PER_SECOND = 200
AT_ONCE = 20


async def lock_many(bench: Bench) -> list[str]:
    """Lock a thousand ConfigMaps; gives their names. One more, that nobody locks, is the yardstick."""
    await bench.make_configmap("free")
    fenced = []
    for asset in range(ASSETS):
        names = [f"fenced-{asset}-{number}" for number in range(TARGETS_EACH)]
        await bench.make_asset(*names)
        lock = await bench.ask(names[0])
        await bench.acquired(lock["metadata"]["name"])
        fenced += names
    return fenced


async def holder_write(bench: Bench, names: Sequence[str]) -> list[Row]:
    """A holder's writes, in turn with writes to the object that nobody locks."""
    taken, raw = await _in_turn(bench, names, WRITES)
    fenced, unlocked = Samples("fenced", taken), Samples("unlocked", raw)
    what = f"holder's write, {len(names)} locked"
    return [
        Row(what, fenced, unlocked, "ms", 1.75),
        Row(f"{what}, its p99", fenced, unlocked, "ms", 5, figure="p99"),
    ]


async def by_policy_alone(bench: Bench, names: Sequence[str]) -> Row:
    """The same without the webhook."""
    taken, raw = await _in_turn(bench, names, WRITES)
    return Row("holder's write, policy alone", Samples("fenced", taken), Samples("unlocked", raw), "ms", 1.3)


async def in_a_storm(bench: Bench, stranger: Bench, names: Sequence[str]) -> Row:
    """The holder's writes while somebody else's are refused, against those while nobody else writes."""
    quiet, stormy, storm = [], [], Storm(stranger, names)
    for _ in range(4):
        quiet += (await _in_turn(bench, names, WRITES // 4))[0]
        async with storm.blowing():
            stormy += (await _in_turn(bench, names, WRITES // 4))[0]
    what = f"holder's write, {storm.rate:.0f} refused a second"
    return Row(what, Samples("in a storm", stormy), Samples("in quiet", quiet), "ms", 1.5)


class Storm:
    """Writes that are refused, at an even pace of 200 a second or what the machine can do."""

    def __init__(self, stranger: Bench, names: Sequence[str]) -> None:
        self._stranger = stranger
        self._names = names
        self._refused = 0
        self._seconds = 0.0

    @property
    def rate(self) -> float:
        """How many were refused a second."""
        return self._refused / self._seconds

    @contextlib.asynccontextmanager
    async def blowing(self) -> AsyncIterator[None]:
        """Blow for as long as the block lasts."""
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            gusts = [tasks.create_task(self._knock(began + n / PER_SECOND)) for n in range(AT_ONCE)]
            try:
                yield
            finally:
                self._seconds += time.perf_counter() - began
                for gust in gusts:
                    gust.cancel()

    async def _knock(self, due: float) -> None:
        while True:
            await asyncio.sleep(due - time.perf_counter())
            with contextlib.suppress(Locked):
                await self._stranger.overwrite(random.choice(self._names))
                raise RuntimeError("a stranger's write was let through")
            self._refused += 1
            due = max(due + AT_ONCE / PER_SECOND, time.perf_counter())


async def _in_turn(bench: Bench, names: Sequence[str], rounds: int) -> tuple[list[float], list[float]]:
    taken, raw = [], []
    for _ in range(rounds):
        raw.append(await bench.patch("free"))
        taken.append(await bench.patch(random.choice(names)))
    return taken, raw
