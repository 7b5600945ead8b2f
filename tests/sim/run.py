"""Plays schedules: `python -m tests.sim.run --seeds 20000`, or one again: `python -m tests.sim.run --seed 1234`.

A failing seed is printed with what happened and as few faults as will do; the exit code is 1 then.
"""

import argparse
import gc
import logging
import sys
import time

from tests.sim.plan import Plan
from tests.sim.story import play, smallest
from tests.sim.world import Broken

BETWEEN_COLLECTIONS = 20
"""So many schedules: a world is garbage as a whole, and to look for parts of it takes a sixth of the time."""


def main() -> int:
    """Play what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="play just this one, and tell all that was committed")
    parser.add_argument("--seeds", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="the first of them (default: %(default)s)")
    parser.add_argument("--no-shrink", action="store_true", help="report failures as they are")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if options.seed is not None:
        return _again(options.seed)
    seeds = range(options.start, options.start + options.seeds)
    return _many(seeds, shrinking=not options.no_shrink, first=options.first)


def _again(seed: int) -> int:
    print(Plan.of(seed))
    try:
        world = play(seed)
    except Broken as broken:
        print(smallest(broken))
        return 1
    print(world.told(last=None))
    return 0


def _many(seeds: range, *, shrinking: bool, first: bool) -> int:
    began, failed, virtual, commits = time.process_time(), 0, 0.0, 0
    gc.disable()
    for seed in seeds:
        if seed % BETWEEN_COLLECTIONS == 0:
            gc.collect()
        try:
            world = play(seed)
        except Broken as broken:
            failed += 1
            print(smallest(broken) if shrinking else broken)
            print(f"again: python -m tests.sim.run --seed {seed}\n", flush=True)
            if first:
                return 1
        else:
            virtual += world.loop.time()
            commits += len(world.commits)
    seconds = time.process_time() - began
    print(
        f"{len(seeds)} schedules, {failed} failed; {commits} commits in {virtual / 3600:.1f} h of virtual time; "
        f"{seconds:.1f} s of CPU, {len(seeds) / seconds:.1f} schedules/s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
