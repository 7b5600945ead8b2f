"""The judges know the rules that only some assets and locks have: without the rule in the code, they complain."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from assetlock.core import decide, pods, tenure, withholding
from tests.sim.plan import Plan, Twist
from tests.sim.shrinking import Schedule
from tests.sim.story import play
from tests.sim.test_controller import CALM
from tests.sim.world import Broken, World

BUSY = dataclasses.replace(CALM, seconds=1.5, lockers=2, pace=0.4, targets=1, elected=False)
MOST_SEEDS = 40


def first_complaint(plan: Plan) -> str:
    for seed in range(MOST_SEEDS):
        try:
            play(Schedule(seed, plan))
        except Broken as broken:
            return str(broken.cause)
    raise AssertionError(f"no judge complains in {MOST_SEEDS} schedules")


def no_withholding(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tuple(rule for rule in decide._RULES if rule is not withholding.withhold)
    monkeypatch.setattr(decide, "_RULES", rules)


def no_longest_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenure, "_longest_hold", lambda *_: None)


def no_look_at_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "_lost_contact", lambda *_: None)


@pytest.mark.parametrize(
    ("twist", "break_it", "complaint"),
    [
        (Twist.LOCK_DELAY, no_withholding, "was passed on"),
        (Twist.QUARANTINE, no_withholding, "was passed on, quarantined"),
        (Twist.MAX_HOLD, no_longest_hold, "after it had run out"),
        (Twist.PODS, no_look_at_nodes, "ended with a pod that lives"),
    ],
)
def test_a_rule_that_is_not_kept_is_noticed(
    twist: Twist,
    break_it: Callable[[pytest.MonkeyPatch], None],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    assert complaint in first_complaint(dataclasses.replace(BUSY, twists=(twist,)))


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
    }
    plan = dataclasses.replace(BUSY, twists=(twist,))
    assert any(seen[twist](play(Schedule(seed, plan))) for seed in range(MOST_SEEDS))


def specs(world: World, plural: str, field: str) -> set[str]:
    found = (change.obj["spec"].get(field) for change in world.commits if change.key.plural == plural)
    return {str(value) for value in found if value is not None}


def owners(world: World, name: str) -> bool:
    leases = (change.obj for change in world.commits if change.key.name.startswith("asset."))
    return any(name in str(lease["metadata"].get("annotations")) for lease in leases)


def reasons(world: World, reason: str) -> bool:
    locks = (change.obj.get("status", {}) for change in world.commits if change.key.plural == "assetlocks")
    return any(reason in str(status.get("conditions")) for status in locks)


def operations(world: World, plural: str, operation: str) -> bool:
    return any((change.key.plural, change.operation) == (plural, operation) for change in world.commits)


def terminating(world: World) -> bool:
    leases = (change.obj for change in world.commits if change.key.plural == "leases")
    return any("deletionTimestamp" in lease["metadata"] for lease in leases)
