"""The judges know the rules that only some assets and locks have: without the rule in the code, they complain."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assetlock.core import acquisition, names, pods
from assetlock.core.locks import lease_claim, queue
from assetlock.core.rules import maintenance, quarantine
from assetlock.core.situation import Situation
from assetlock.core.windows.gate import Gate
from assetlock.model.assetlock import AssetLock
from tests.rules import leave_out
from tests.sim.plan import Plan, Twist
from tests.sim.shrinking import Schedule
from tests.sim.story import play
from tests.sim.test_controller import CALM
from tests.sim.world import Broken, World

BUSY = dataclasses.replace(CALM, seconds=1.5, lockers=2, pace=0.4, targets=1, elected=False)
MOST_SEEDS = 40


def complaints(plan: Plan) -> Iterator[str]:
    for seed in range(MOST_SEEDS):
        try:
            play(Schedule(seed, plan))
        except Broken as broken:
            yield str(broken.cause)


def no_withholding(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, quarantine.withhold)


def no_longest_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_claim, "_longest_hold", lambda *_: None)


def no_look_at_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "_lost_contact", lambda *_: None)


def no_heirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_rank(situation: Situation) -> list[AssetLock]:
        held = {holder.id for holder in situation.holders}
        return queue.in_line(situation.observation, besides=held)

    monkeypatch.setattr(Situation, "waiters", property(by_rank))


def no_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither do they keep others out, nor do they have locks that would."""
    leave_out(monkeypatch, maintenance.keep)
    monkeypatch.setattr(Gate, "refusal", lambda *_: None)


def nobody_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquisition, "_revoked", lambda *_: None)


@pytest.mark.parametrize(
    ("twist", "break_it", "complaint"),
    [
        (Twist.LOCK_DELAY, no_withholding, "was passed on"),
        (Twist.QUARANTINE, no_withholding, "was passed on, quarantined"),
        (Twist.MAX_HOLD, no_longest_hold, "after it had run out"),
        (Twist.PODS, no_look_at_nodes, "ended with a pod that lives"),
        (Twist.TAKE_OVER, no_heirs, "to who was not to take over"),
        (Twist.WINDOWS, no_windows, "was granted ['vm'], closed by freeze"),
        (Twist.WINDOWS, nobody_revoked, "still held vm, closed by freeze"),
    ],
)
def test_a_rule_that_is_not_kept_is_noticed(
    twist: Twist,
    break_it: Callable[[pytest.MonkeyPatch], None],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    plan = dataclasses.replace(BUSY, twists=(twist,))
    assert any(complaint in each for each in complaints(plan))


@pytest.mark.parametrize("twist", [*Twist])
def test_each_twist_comes_about(twist: Twist) -> None:
    """What a twist is about is seen in some schedule, so that it is not only drawn."""
    seen: dict[Twist, Callable[[World], Any]] = {
        Twist.MAX_HOLD: lambda world: specs(world, "assets", "maxHold"),
        Twist.LOCK_DELAY: lambda world: owners(world, "lock-delay"),
        Twist.QUARANTINE: lambda world: owners(world, "quarantine"),
        Twist.TAKE_OVER: lambda world: reasons(world, "HandedOver"),
        Twist.PODS: lambda world: reasons(world, "HolderGone"),
        Twist.REMADE_TARGET: lambda world: operations(world, "configmaps", "DELETE"),
        Twist.REMADE_ASSET: lambda world: operations(world, "assets", "DELETE"),
        Twist.RETARGETED: lambda world: len(specs(world, "assets", "targets")) > 1,
        Twist.FINALIZERS: lambda world: terminating(world),
        Twist.WINDOWS: lambda world: owners(world, names.WINDOW_USER_PREFIX),
    }
    plan = dataclasses.replace(BUSY, twists=(twist,))
    assert any(seen[twist](play(Schedule(seed, plan))) for seed in range(MOST_SEEDS))


def test_locks_are_held_that_admission_has_not_seen() -> None:
    plan = dataclasses.replace(BUSY, lockers=0, jobs=2, outages=3)
    assert any(tokens_without_an_acquisition(play(Schedule(seed, plan))) for seed in range(MOST_SEEDS))


def tokens_without_an_acquisition(world: World) -> bool:
    leases = (
        change.obj["metadata"] for change in world.commits if change.key.name.startswith(("asset.", "asset-"))
    )
    told = (lease.get("annotations", {}) for lease in leases)
    return any(names.TOKEN_ANNOTATION in one and names.ACQUISITION_ANNOTATION not in one for one in told)


def specs(world: World, plural: str, field: str) -> set[str]:
    found = (change.obj["spec"].get(field) for change in world.commits if change.key.plural == plural)
    return {str(value) for value in found if value is not None}


def owners(world: World, name: str) -> bool:
    leases = (change.obj for change in world.commits if change.key.name.startswith(("asset.", "asset-")))
    return any(name in str(lease["metadata"].get("annotations")) for lease in leases)


def reasons(world: World, reason: str) -> bool:
    locks = (change.obj.get("status", {}) for change in world.commits if change.key.plural == "assetlocks")
    return any(reason in str(status.get("conditions")) for status in locks)


def operations(world: World, plural: str, operation: str) -> bool:
    return any((change.key.plural, change.operation) == (plural, operation) for change in world.commits)


def terminating(world: World) -> bool:
    leases = (change.obj for change in world.commits if change.key.plural == "leases")
    return any("deletionTimestamp" in lease["metadata"] for lease in leases)
