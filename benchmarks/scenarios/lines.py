"""What a long line costs: those who stand in it, those who stand in a short one beside it, and the controller."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncGenerator, Sequence

from assetlock.cli.stack import Part
from benchmarks.bench import Bench
from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage

SHORT_LINE, LONG_LINE = 20, 2000
HANDOVERS = 15


@scenario(seconds=200)
async def long_line(stage: Stage) -> AsyncGenerator[Row, None]:
    """Hand-overs in a short line alone, in a short one beside a long one, and in that."""
    async with stage.bench() as bench:
        alone = await hand_overs(bench, await stand("alone", bench, SHORT_LINE))
        short = Samples(f"hand-over, {SHORT_LINE} in line and no other", alone)
        line = await stand("long", bench, LONG_LINE)
        beside = await hand_overs(bench, await stand("beside", bench, SHORT_LINE))
        name = f"hand-over, {SHORT_LINE} in line beside {LONG_LINE}"
        yield Row(name, Samples("beside", beside), short, "raw creates", 1.2)
        in_line = Samples("long", await hand_overs(bench, line))
        yield Row(f"hand-over, {LONG_LINE} in line", in_line, short, "raw creates", 1.5)


@scenario(seconds=180)
async def waiters_created(stage: Stage) -> AsyncGenerator[Row, None]:
    """The CPU of the controller while a line forms, against half as long a one."""
    async with stage.bench() as bench:
        half = Samples("half as many", [await _cost_of_asking(stage, bench, "half", LONG_LINE // 2)])
        whole = Samples("all", [await _cost_of_asking(stage, bench, "whole", LONG_LINE)])
    yield Row(f"controller's CPU, {LONG_LINE} waiters created", whole, half, "s", 2.2)


async def _cost_of_asking(stage: Stage, bench: Bench, asset: str, length: int) -> float:
    before = stage.cpu(Part.CONTROLLER)
    await stand(asset, bench, length)
    return stage.cpu(Part.CONTROLLER) - before


async def stand(asset: str, bench: Bench, length: int) -> Sequence[str]:
    """Form a line; gives its locks, the holder first.

    By falling priority, so that it is known who is next: equals within one second go by UID.
    """
    await bench.make_asset(asset)
    asked = [await bench.ask(asset, wait="2h", priority=1000 - n) for n in range(length)]
    names = [lock["metadata"]["name"] for lock in asked]
    await bench.acquired(names[0])
    return names


async def hand_overs(bench: Bench, line: Sequence[str]) -> list[float]:
    """How long each of the first ones takes, in raw Lease creates."""
    taken, raw = [], []
    for turn in range(HANDOVERS):
        raw.append((await bench.raw_lease())[0])
        began = time.perf_counter()
        await bench.release(line[turn])
        taken.append((await bench.acquired(line[turn + 1]) - began) * 1000)
    return [each / statistics.median(raw) for each in taken]
