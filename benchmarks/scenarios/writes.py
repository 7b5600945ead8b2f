"""What a write costs to something that nobody locks."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage

WRITES = 300


@scenario(seconds=60)
async def unlocked_write(stage: Stage) -> AsyncGenerator[Row, None]:
    """A write to an object that nobody locks, against one in a cluster that has nothing of ours."""
    async with stage.bench() as bench, stage.plain() as plain:
        await bench.make_asset("unlocked")
        await plain.make_configmap("unlocked")
        taken, raw = [], []
        for _ in range(WRITES):
            raw.append(await plain.patch("unlocked"))
            taken.append(await bench.patch("unlocked"))
    yield Row("unlocked write", Samples("installed", taken), Samples("cluster without us", raw), "ms", 1.1)
