"""A whole simulation is a function of its seed, finds what is broken, and says how to have it again."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from assetlock.kube.errors import KubeError, OutcomeUnknown
from assetlock.kube.resources import LEASES
from assetlock.kube.transport import TransportError
from tests.sim import faults, freezing, kinds
from tests.sim.admission import ADMIN
from tests.sim.conversation import Conversation
from tests.sim.store import Change
from tests.sim.world import Body, Broken, Process, World, simulate

COLLECTION = LEASES.path("default")
THE_LEASE = LEASES.path("default", "asset.vm")


def lease(holder: str) -> dict[str, Any]:
    spec = {"holderIdentity": holder}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "asset.vm"},
        "spec": spec,
    }


async def take_turns(process: Process) -> None:
    """Hold the Lease now and then, by creating and deleting it; give up a turn when the network fails."""
    speaker = Conversation(process.client, "default")
    for _ in range(5):
        try:
            reply = await speaker.send("POST", COLLECTION, lease(process.name))
            await asyncio.sleep(1)
            if reply.status == 201:
                await speaker.send("DELETE", THE_LEASE)
        except TransportError:
            await asyncio.sleep(1)


async def three_take_turns(world: World) -> None:
    processes = [world.process(f"client-{number}", take_turns) for number in range(3)]
    await asyncio.wait([process.task for process in processes if process.task])


def history(world: World) -> list[tuple[float, str, str]]:
    return [(change.time, change.operation, change.user) for change in world.commits]


def test_the_same_seed_gives_the_same_history_and_another_seed_another() -> None:
    def run(seed: int) -> list[tuple[float, str, str]]:
        return history(simulate(three_take_turns, seed=seed, rates=faults.rough(5), slow_commits=0.5))

    assert run(1) == run(1)
    assert run(1) != run(2)


async def overwrite_blindly(process: Process) -> None:
    """Take the Lease by a patch without a version: what compare-and-swap is there to prevent."""
    speaker = Conversation(process.client, "default")
    for _ in range(20):
        patch = {"spec": {"holderIdentity": process.name}}
        try:
            await speaker.send("PATCH", THE_LEASE, patch, content_type="application/merge-patch+json")
        except TransportError:
            continue


def no_holder_is_robbed(change: Change) -> None:
    if change.old and change.new:
        before, after = (version.obj["spec"]["holderIdentity"] for version in (change.old, change.new))
        assert before in ("", after), f"{after} robbed {before}"


async def robbery(world: World) -> None:
    world.judges.append(no_holder_is_robbed)
    await Conversation(world.client(ADMIN), "default").send("POST", COLLECTION, lease(""))
    thieves = [world.process(name, overwrite_blindly) for name in ("ann", "bob")]
    await asyncio.wait([thief.task for thief in thieves if thief.task])


def test_a_judge_ends_the_run_with_the_seed_and_what_led_to_it() -> None:
    with pytest.raises(Broken, match=r"seed 7: AssertionError: \w+ robbed \w+") as broken:
        simulate(robbery, seed=7)
    assert "UPDATE leases/default/asset.vm" in str(broken.value)


def test_a_killed_process_says_nothing_more_until_it_is_started_again() -> None:
    async def story(world: World) -> None:
        process = world.process("client", take_turns)
        await asyncio.sleep(0.5)
        await process.crash()
        await asyncio.sleep(100)
        assert [change.operation for change in world.commits] == ["CREATE"]
        await Conversation(world.client(process.user), "default").send("DELETE", THE_LEASE)
        process.start()
        await asyncio.sleep(100)
        assert len(world.commits) == 2 + 10

    simulate(story, seed=1)


def test_quiet_ends_all_trouble() -> None:
    async def story(world: World) -> None:
        client = world.process("client", take_turns)
        world.quiet()
        assert client.task
        await client.task
        assert world.drawn() == []
        assert len(world.commits) == 10

    simulate(story, seed=1, rates=dict.fromkeys(faults.Trouble, 0.1))


def test_a_watcher_sees_every_commit_in_order() -> None:
    async def story(world: World) -> None:
        seen: list[int] = []

        async def watch(process: Process) -> None:
            params = {"watch": "true", "resourceVersion": "1"}
            stream = process.client.stream(COLLECTION, params=params, headers={}, idle_timeout=70)
            async for line in stream:
                seen.append(int(json.loads(line)["object"]["metadata"]["resourceVersion"]))

        world.process("watcher", watch)
        await three_take_turns(world)
        await asyncio.sleep(1)
        assert seen == [change.revision for change in world.commits]

    simulate(story, seed=5)


@dataclass
class Tally:
    """What the counting clients know: increments that surely happened, and those that may have."""

    sure: int = 0
    unknown: int = 0


def counting(tally: Tally) -> Body:
    async def count(process: Process) -> None:
        for _ in range(10):
            try:
                found = await process.api.get(LEASES, "default", "asset.vm")
                found["spec"]["leaseTransitions"] = found["spec"].get("leaseTransitions", 0) + 1
                await process.api.replace(LEASES, "default", "asset.vm", found)
                tally.sure += 1
            except OutcomeUnknown:
                tally.unknown += 1
            except KubeError:
                continue

    return count


@pytest.mark.parametrize("seed", range(40))
def test_compare_and_swap_over_a_rough_network_loses_and_doubles_no_increment(seed: int) -> None:
    async def story(world: World) -> None:
        tally = Tally()
        await Conversation(world.client(ADMIN), "default").send("POST", COLLECTION, lease(""))
        processes = [world.process(f"counter-{number}", counting(tally)) for number in range(3)]
        await asyncio.wait([process.task for process in processes if process.task])
        await asyncio.sleep(60)
        [stored] = world.server.store.objects(kinds.LEASES)
        assert tally.sure <= stored["spec"]["leaseTransitions"] <= tally.sure + tally.unknown

    simulate(story, seed=seed, rates=faults.rough(3), slow_commits=0.05)


def test_a_process_that_is_stopped_when_a_simulation_breaks_does_not_outlive_it() -> None:
    stopped: list[Process] = []

    async def sleeper(process: Process) -> None:
        gate.enter()
        await asyncio.sleep(1000)

    async def story(world: World) -> None:
        freezing.install(world.loop)
        stopped.append(world.process("sleeper", sleeper))
        await asyncio.sleep(1)
        with gate.shut():
            await asyncio.sleep(1)
            raise RuntimeError("broken")

    gate = freezing.Gate()
    with pytest.raises(Broken, match="broken"):
        simulate(story, seed=1)
    task = stopped[0].task
    assert task is not None
    assert task.cancelled()
