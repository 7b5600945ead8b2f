"""What the fence costs its holder, among a thousand locked objects and while strangers knock."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence

from benchmarks.bench import Bench
from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage
from benchmarks.storm import Storm

ASSETS = 20
TARGETS_EACH = 50
WRITES = 600


@scenario(seconds=180)
async def holders_write(stage: Stage) -> AsyncGenerator[Row, None]:
    """Writes by whoever holds a lock, with the webhook, in a storm of refusals, and by the policy alone."""
    async with stage.bench() as bench:
        names = await _lock_many(bench)
        for row in await _holder_write(bench, names):
            yield row
        stranger = stage.cluster.kubeconfig_for("stranger", "system:masters")
        yield await _in_a_storm(bench, Storm(stranger, names), names)
        stage.cluster.kubectl("delete", "mutatingwebhookconfiguration", "assetlock")
        yield await _by_policy_alone(bench, names)


async def _lock_many(bench: Bench) -> list[str]:
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


async def _holder_write(bench: Bench, names: Sequence[str]) -> list[Row]:
    """A holder's writes, in turn with writes to the object that nobody locks."""
    taken, raw = await _in_turn(bench, names, WRITES)
    fenced, unlocked = Samples("fenced", taken), Samples("unlocked", raw)
    what = f"holder's write, {len(names)} locked"
    return [
        Row(what, fenced, unlocked, "ms", 1.75),
        Row(f"{what}, excess at p99", fenced, unlocked, "ms", 5, figure="excess at p99"),
    ]


async def _by_policy_alone(bench: Bench, names: Sequence[str]) -> Row:
    """The same without the webhook."""
    taken, raw = await _in_turn(bench, names, WRITES)
    return Row("holder's write, policy alone", Samples("fenced", taken), Samples("unlocked", raw), "ms", 1.3)


async def _in_a_storm(bench: Bench, storm: Storm, names: Sequence[str]) -> Row:
    """The holder's writes while somebody else's are refused, against those while nobody else writes."""
    quiet, stormy = [], []
    for _ in range(4):
        quiet += (await _in_turn(bench, names, WRITES // 4))[0]
        with storm.blowing():
            stormy += (await _in_turn(bench, names, WRITES // 4))[0]
    what = f"holder's write, {storm.rate:.0f} refused a second"
    return Row(what, Samples("in a storm", stormy), Samples("in quiet", quiet), "ms", 1.5)


async def _in_turn(bench: Bench, names: Sequence[str], rounds: int) -> tuple[list[float], list[float]]:
    taken, raw = [], []
    for _ in range(rounds):
        raw.append(await bench.patch("free"))
        taken.append(await bench.patch(random.choice(names)))
    return taken, raw
