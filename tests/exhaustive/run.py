"""Explores the decision: `python -m tests.exhaustive.run --depth 12`; it ends earlier if no state is new.

Prints how many states were new at each depth. A broken promise is told with the shortest way there; exit code 1.
"""

import argparse
import sys
import time

from tests.exhaustive.explore import MIXES, Found, explore


def main() -> int:
    """Explore what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=12, help="so many steps at most (default: %(default)s)")
    options = parser.parse_args()
    for name, mix in MIXES.items():
        print(name, flush=True)
        began = time.process_time()

        def tell(depth: int, new: int, began: float = began) -> None:
            print(f"  depth {depth:3}: {new:8} new states, {time.process_time() - began:7.1f} s", flush=True)

        try:
            explored = explore(mix, most_depth=options.depth, report=tell)
        except Found as found:
            print(found)
            return 1
        extent = "all there are" if explored.complete else f"all within {options.depth} steps"
        print(f"  {explored.states} states, {extent}; {explored.transitions} transitions; all promises hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
