"""Kills the operator under load, with -9, and judges it: `python -m tests.restarts.run --kills 100`.

Prints what was seen. Exit code 1 when something was not as it must be.
"""

import argparse
import asyncio
import secrets
import statistics
import sys

from tests.restarts.play import Outcome, play


def table(outcome: Outcome) -> str:
    """The run as Markdown."""
    verdict, lives = outcome.verdict, outcome.lives
    led = sum(life.leading is not None for life in lives)
    ready = [life.leading - life.started for life in lives[1:] if life.leading is not None]
    delays = sorted(delay for _, delay in verdict.delays)
    ends = ", ".join(f"{count} {state}" for state, count in sorted(verdict.ended.items()))
    writes = sorted(took * 1000 for _, took in outcome.writes)
    lines = [
        "| what | seen |",
        "| --- | --- |",
        f"| kills | {len(lives) - 1} of the controller, {outcome.admission_kills} of the webhooks with it; "
        f"{led} lives led |",
        f"| from start to leading | {statistics.median(ready):.1f} s, {max(ready):.1f} s at most |",
        f"| history | {verdict.revisions} revisions; {verdict.granted} locks and {verdict.by_hand} Leases made by "
        "hand were announced |",
        f"| ends | {ends} |",
        f"| expired and granted on, or ended | {len(delays)} times, {statistics.median(delays):.1f} s after it was "
        f"due and somebody led, {delays[-1]:.1f} s at most |",
        f"| plain writes meanwhile | {statistics.median(writes):.0f} ms, {writes[-1]:.0f} ms at most |",
        f"| complaints | {len(outcome.complaints)} |",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="which moments, and what clients do")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    outcome = asyncio.run(play(options.kills, options.seed))
    print(table(outcome))
    for complaint in outcome.complaints:
        print(complaint)
    return 1 if outcome.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
