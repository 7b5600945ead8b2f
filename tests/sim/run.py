"""Plays schedules: `make sim SEEDS=20000` plays the first so many, on all cores; `make sim SEED=1234` one again.

A failing one is made as small as it goes, and printed with what happened and the command that plays it again; the
exit code is 1 then. What a seed does depends on nothing else, so the same seeds fail on every machine.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import gc
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence

from tests.sim import shrinking
from tests.sim.plan import Plan
from tests.sim.seeds import FAILED_ONCE, OPEN
from tests.sim.shrinking import Failure, Schedule, smallest
from tests.sim.story import play, schedule_of
from tests.sim.world import Broken

PORTION = 20
"""So many schedules between two collections: a world is garbage as a whole, and to look for parts takes long."""


@dataclasses.dataclass(slots=True)
class Tally:
    """What became of some schedules; `cpu` in seconds."""

    played: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    commits: int = 0
    virtual: float = 0.0
    cpu: float = 0.0

    def add(self, other: "Tally") -> None:
        """Count others in."""
        self.played += other.played
        self.failures += other.failures
        self.commits += other.commits
        self.virtual += other.virtual
        self.cpu += other.cpu

    def __str__(self) -> str:
        return (
            f"{self.played} schedules, {len(self.failures)} failed; {self.commits} commits in "
            f"{self.virtual / 3600:.1f} h of virtual time; {self.cpu:.1f} s of CPU, "
            f"{self.played / self.cpu:.1f} schedules/s, {self.commits / self.cpu:.0f} commits/s on a core"
        )


def main() -> int:
    """Play what the arguments say."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets are walked in an order that would otherwise be another one each time.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="play just this one, and tell all that was committed")
    parser.add_argument("--with", dest="changes", default="", help="with another plan: lockers=1,crashes=0")
    parser.add_argument("--mute", default="", help="without these faults: operator-0/1:3.7")
    parser.add_argument("--seeds", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="the first of them (default: %(default)s)")
    parser.add_argument(
        "--failed-once",
        action="store_true",
        help="and every seed that has ever failed, without those that are known to fail now",
    )
    parser.add_argument("--processes", type=int, default=1, help="play side by side (default: %(default)s)")
    parser.add_argument("--no-shrink", action="store_true", help="report failures as they are")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if options.seed is not None:
        plan = shrinking.changed(Plan.of(options.seed), options.changes)
        return _again(Schedule(options.seed, plan, shrinking.muted(options.mute)))
    seeds: list[int] = [*range(options.start, options.start + options.seeds)]
    if options.failed_once:
        seeds += [seed for seed in FAILED_ONCE if seed not in seeds]
    if left_out := sorted(OPEN.keys() & set(seeds)):
        print(f"left out, as they are known to fail: {', '.join(map(str, left_out))}", flush=True)
        seeds = [seed for seed in seeds if seed not in OPEN]
    return _many(seeds, processes=options.processes, shrinking=not options.no_shrink, first=options.first)


def _again(schedule: Schedule) -> int:
    print(schedule.plan)
    try:
        world = play(schedule)
    except Broken as broken:
        print(smallest(Failure(schedule, broken), play))
        return 1
    print(world.told(last=None))
    return 0


def _many(seeds: Sequence[int], *, processes: int, shrinking: bool, first: bool) -> int:
    tally = Tally()
    portions = [seeds[start : start + PORTION] for start in range(0, len(seeds), PORTION)]
    played = functools.partial(played_all, shrinking=shrinking, first=first)
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        for found in pool.map(played, portions):
            for failure in found.failures:
                print(f"{failure}\n", flush=True)
            tally.add(found)
            if first and tally.failures:
                pool.shutdown(cancel_futures=True)
                return 1
    print(tally)
    return 1 if tally.failures else 0


def played_all(seeds: Iterable[int], *, shrinking: bool = True, first: bool = False) -> Tally:
    """Play these; `first`: up to the first failure. Failures come made small, and ready to be read."""
    logging.disable(logging.WARNING)
    tally, began = Tally(), time.process_time()
    gc.disable()
    for seed in seeds:
        why = why_broken(schedule_of(seed), tally, shrinking=shrinking)
        tally.failures += [why] if why else []
        if first and why:
            break
    gc.enable()
    gc.collect()
    tally.cpu = time.process_time() - began
    return tally


def why_broken(schedule: Schedule, tally: Tally, *, shrinking: bool) -> str | None:
    """Play one and count it in; what was broken, if anything."""
    tally.played += 1
    try:
        world = play(schedule)
    except Broken as broken:
        failure = Failure(schedule, broken)
        return str(smallest(failure, play) if shrinking else failure)
    tally.commits += len(world.commits)
    tally.virtual += world.loop.time()
    return None


if __name__ == "__main__":
    sys.exit(main())
