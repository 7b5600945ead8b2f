"""Make a failing schedule smaller for as long as it fails: a plainer plan first, then fewer faults.

What is left is told with the command that plays it again.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from tests.sim.plan import Plan
from tests.sim.world import Broken

Muted = Mapping[str, Collection[int]]
Fault = tuple[str, int]

_COUNTS = ("crashes", "freezes", "outages", "slow_answers", "starved", "lockers")

_PLAINER: tuple[tuple[str, Any], ...] = (
    ("roughness", 0.0),
    ("stale_watches", False),
    ("slow_commits", 0.0),
    ("skews", (0.0, 0.0)),
    ("jumps", 0),
    ("admission_skew", 0.0),
    ("outages", 0),
    ("slow_answers", 0),
    ("starved", 0),
    ("meddling", False),
    ("crashes", 0),
    ("freezes", 0),
    ("crashes", 1),
    ("freezes", 1),
    ("outages", 1),
    ("slow_answers", 1),
    ("starved", 1),
    ("elected", False),
    ("jobs", 0),
    ("lockers", 1),
    ("lockers", 2),
    ("shared_target", False),
    ("scales", False),
    ("joint", False),
    ("capacity", 1),
    ("targets", 1),
    ("seconds", 0.8),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """What is played: a seed, a plan that need not be the seed's own, and the faults that do not happen after all."""

    seed: int | str
    plan: Plan
    muted: Muted = dataclasses.field(default_factory=dict)

    def command(self) -> str:
        """How to have it again."""
        own = Plan.of(self.seed)
        words = [f"make sim SEED={self.seed}"]
        changed = (f"{name}={_short(value)}" for name, value in _differences(own, self.plan))
        muted = (f"{name}:{'.'.join(map(str, sorted(found)))}" for name, found in self.muted.items())
        for option, told in (("WITH", ",".join(changed)), ("MUTE", ",".join(muted))):
            words += [f"{option}='{told}'"] if told else []
        return " ".join(words)


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A schedule that failed, and how."""

    schedule: Schedule
    broken: Broken

    def __str__(self) -> str:
        return f"{self.broken}\nagain: {self.schedule.command()}"


Play = Callable[[Schedule], object]
"""Raises `Broken`."""


def smallest(failure: Failure, play: Play) -> Failure:
    """The plainest schedule found that still fails, be it in another way."""
    for name, value in _PLAINER:
        present = getattr(failure.schedule.plan, name)
        if present != value and not (name in _COUNTS and present < value):
            plan = dataclasses.replace(failure.schedule.plan, **{name: value})
            failure = _tried(dataclasses.replace(failure.schedule, plan=plan), play) or failure
    for twist in failure.schedule.plan.twists:
        left = tuple(other for other in failure.schedule.plan.twists if other != twist)
        plan = dataclasses.replace(failure.schedule.plan, twists=left)
        failure = _tried(dataclasses.replace(failure.schedule, plan=plan), play) or failure
    return _fewest_faults(failure, play)


def _fewest_faults(failure: Failure, play: Play) -> Failure:
    """Mute half of the faults at once, then quarters, and so on to single ones."""
    size = len(failure.broken.drawn)
    while size:
        size = (size + 1) // 2 if size > 1 else 0
        for portion in _portions(
            [(name, drawn.number) for name, drawn in failure.broken.drawn], max(size, 1)
        ):
            failure = _tried(_without(failure.schedule, portion), play) or failure
    return failure


def _tried(schedule: Schedule, play: Play) -> Failure | None:
    try:
        play(schedule)
    except Broken as still:
        return Failure(schedule, still)
    return None


def _portions(faults: list[Fault], size: int) -> Iterator[list[Fault]]:
    """From the last to the first: what comes late is least likely to matter."""
    for end in range(len(faults), 0, -size):
        yield faults[max(0, end - size) : end]


def _without(schedule: Schedule, faults: list[Fault]) -> Schedule:
    muted = {name: set(numbers) for name, numbers in schedule.muted.items()}
    for name, number in faults:
        muted.setdefault(name, set()).add(number)
    return dataclasses.replace(schedule, muted=muted)


def _differences(own: Plan, other: Plan) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(Plan):
        value = getattr(other, field.name)
        if value != getattr(own, field.name):
            yield field.name, value


def _short(value: Any) -> str:
    if value == (0.0, 0.0):
        return "0"
    return "+".join(value) if isinstance(value, tuple) else str(value)


def changed(plan: Plan, told: str) -> Plan:
    """A plan with the changes that a command tells: `lockers=1,roughness=0.0`; ValueError for anything else."""
    values: dict[str, Any] = {}
    for word in filter(None, told.split(",")):
        name, _, text = word.partition("=")
        present = getattr(plan, name, None)
        if present is None:
            raise ValueError(f"a plan has no {name!r}")
        if name == "twists":
            values[name] = tuple(filter(None, text.split("+")))
            continue
        if isinstance(present, bool):
            values[name] = text == "True"
        elif isinstance(present, tuple):
            values[name] = (float(text), float(text))
        else:
            values[name] = type(present)(text)
    return dataclasses.replace(plan, **values)


def muted(told: str) -> dict[str, set[int]]:
    """The faults that a command tells: `operator-0/1:3.7`."""
    found = {}
    for word in filter(None, told.split(",")):
        name, _, numbers = word.rpartition(":")
        found[name] = {int(number) for number in numbers.split(".")}
    return found
