"""What is drawn before a schedule begins: how long it is, who acts in it, and what goes wrong."""

import enum
import random
from dataclasses import dataclass

from tests.sim.strictness import Strictness


class Twist(enum.StrEnum):
    """What is besides in some schedules: rules of assets and locks that others lack, and what befalls objects."""

    MAX_HOLD = "max-hold"  # locks end a while after they began, however often they are renewed
    LOCK_DELAY = "lock-delay"  # after a lock that was not released nobody gets the asset for a while
    QUARANTINE = "quarantine"  # some locks keep everybody out when they run out, until somebody has looked
    TAKE_OVER = "take-over"  # some locks are asked for to follow the present one
    PODS = "pods"  # lockers live in pods of Jobs, on nodes that may be lost
    REMADE_TARGET = "remade-target"  # a target is deleted and made anew
    REMADE_ASSET = "remade-asset"  # an asset is deleted and made anew
    RETARGETED = "retargeted"  # an asset names other targets
    FINALIZERS = "finalizers"  # somebody's finalizer keeps Leases that were deleted
    WINDOWS = "windows"  # a maintenance window opens and closes, and is edited meanwhile


@dataclass(frozen=True, slots=True)
class Plan:
    """Measures. `seconds`: so long new locks are asked for. `pace`: how long clients ponder, as a factor.
    `outages`: so often admission does not answer for a while. `slow_answers`: so often each answer to the controllers
    takes seconds for a while. `starved`: so often a controller gets a twentieth of a processor for a while.

    Most schedules are short and dense: two or three locks in two or three seconds, with the troubles on top of each
    other. Whatever takes longer to come about is left to the few long ones.
    """

    seconds: float
    roughness: float
    stale_watches: bool
    slow_commits: float
    elected: bool
    crashes: int
    freezes: int
    skews: tuple[float, float]
    jumps: int
    lockers: int
    jobs: int
    shared_target: bool
    meddling: bool
    capacity: int = 1
    scales: bool = False
    joint: bool = False
    pace: float = 1.0
    targets: int = 2
    twists: tuple[str, ...] = ()
    admission_skew: float = 0.0
    outages: int = 0
    slow_answers: int = 0
    starved: int = 0

    @classmethod
    def of(cls, seed: int | str) -> "Plan":
        """A quarter of all schedules are calm, the others have one or several kinds of trouble."""
        rng = random.Random(f"plan/{seed}")
        calm = rng.random() < 0.25
        long = rng.random() < 0.04

        def sometimes(chance: float) -> bool:
            return not calm and rng.random() < chance

        skewed = sometimes(0.3)
        return cls(
            seconds=rng.choice([4.0, 10.0]) if long else rng.choice([0.8, 1.5]),
            roughness=rng.choice([0.5, 1.0, 3.0]) if sometimes(0.5) else 0.0,
            stale_watches=sometimes(0.2),
            slow_commits=rng.choice([0.02, 0.2, 2.0]) if sometimes(0.4) else 0.0,
            elected=rng.random() < 0.5,
            crashes=rng.choice([1, 3]) if sometimes(0.4) else 0,
            freezes=rng.choice([1, 3]) if sometimes(0.4) else 0,
            skews=(rng.uniform(-3600, 3600), rng.uniform(-3600, 3600)) if skewed else (0.0, 0.0),
            jumps=2 if sometimes(0.15) else 0,
            lockers=rng.choice([1, 2, 4]) if long else rng.choice([1, 2, 2]),
            jobs=rng.choice([0, 1, 2]) if long else rng.choice([0, 0, 1]),
            shared_target=rng.random() < 0.2,
            meddling=sometimes(0.25),
            capacity=rng.choice([1, 1, 2, 3]),
            scales=rng.random() < 0.3,
            joint=rng.random() < 0.35,
            pace=1.0 if long else 0.4,
            targets=2 if long else rng.choice([1, 1, 2]),
            twists=tuple(map(str, rng.sample(list(Twist), rng.choice([0, 1, 1, 2])))),
            admission_skew=rng.uniform(-30, 30) if sometimes(0.1) else 0.0,
            outages=rng.choice([1, 3]) if sometimes(0.2) else 0,
            slow_answers=rng.choice([1, 2]) if sometimes(0.2) else 0,
            starved=rng.choice([1, 2]) if sometimes(0.2) else 0,
        )

    def has(self, twist: Twist) -> bool:
        """Whether the schedule has it."""
        return twist in self.twists

    @property
    def strictness(self) -> Strictness:
        """What may be asked of a schedule with such troubles."""
        off = self.skews != (0.0, 0.0) or self.jumps > 0 or self.admission_skew != 0
        stopped = self.crashes > 0 or self.freezes > 0 or self.slow_answers > 0 or self.starved > 0
        delayed = self.roughness > 0 or self.stale_watches or self.slow_commits > 0.1
        remade = self.has(Twist.REMADE_ASSET)
        return Strictness(
            in_order=not (off or delayed or stopped or self.meddling or remade or self.has(Twist.FINALIZERS)),
            on_time=not (off or delayed or remade),
            full_terms=not off and self.roughness == 0,
            patience=0.15 + 8 * self.slow_commits,
        )
