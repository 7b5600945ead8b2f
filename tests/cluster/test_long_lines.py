"""Two thousand in one line, on a real control plane: nobody is lost, and who stands elsewhere is served as before."""

from __future__ import annotations

import asyncio
import statistics

from benchmarks.bench import NAMESPACE, Bench
from benchmarks.scenarios.lines import SHORT_LINE, hand_overs, stand
from benchmarks.stage import Stage, installed

from assetlock.cli.stack import Part
from assetlock.kube.resources import ASSETLOCKS

WAITERS = 2_000
AT_ONCE = 16
PATIENT = "45s"
TIMES_AS_LONG = 10
"""It was hundreds of times while a decision looked at the whole line. A busy machine alone makes it four."""


async def form_a_line(bench: Bench) -> None:
    """Behind a holder that stays; all give up when their wait is over."""
    await bench.make_asset("long")
    holder = await bench.ask("long", wait="2h")
    await bench.acquired(holder["metadata"]["name"])
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask() -> None:
        async with turns:
            await bench.ask("long", wait=PATIENT)

    await asyncio.gather(*(ask() for _ in range(WAITERS)))


async def ends(bench: Bench) -> list[str]:
    """How each waiter in the long line ended, once all have; gives up after five minutes."""
    async with asyncio.timeout(300):
        while True:
            listed = await bench.api.list(ASSETLOCKS, NAMESPACE)
            line = [
                o for o in listed.items if o["spec"]["assetName"] == "long" and o["spec"]["wait"] == PATIENT
            ]
            finished = [o["status"]["conditions"] for o in line if "finishTime" in o.get("status", {})]
            if len(finished) == WAITERS:
                return [next(c["reason"] for c in told if c["type"] == "Finished") for told in finished]
            await asyncio.sleep(1)


async def story(stage: Stage) -> None:
    async with stage.bench() as bench:
        alone = statistics.median(await hand_overs(bench, await stand("alone", bench, SHORT_LINE)))
        await form_a_line(bench)
        beside = statistics.median(await hand_overs(bench, await stand("beside", bench, SHORT_LINE)))
        assert await ends(bench) == ["WaitTimeout"] * WAITERS
        assert beside < TIMES_AS_LONG * alone, "in raw Lease creates of the same minute"
        assert stage.cpu(Part.CONTROLLER), "it was never started again"


def test_two_thousand_in_one_line_give_up_in_time_and_hold_nobody_up_elsewhere() -> None:
    with installed() as stage:
        asyncio.run(story(stage))
