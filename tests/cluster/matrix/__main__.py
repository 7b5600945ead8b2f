"""Tries the whole matrix and writes the page: ``make matrix``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from tests.cluster.matrix.cells import Outage
from tests.cluster.matrix.expected import expected
from tests.cluster.matrix.page import PAGE, Outcomes, page
from tests.cluster.matrix.stage import set_up
from tests.cluster.matrix.trying import tried


def _observed(outage: Outage) -> Outcomes:
    print(f"trying: {outage}", file=sys.stderr)
    with set_up(outage) as cluster:
        observed = asyncio.run(tried(cluster, outage))
    for surprise in (*_surprises(observed.outcomes, outage), *observed.changed):
        print(f"not as the rules say: {surprise}", file=sys.stderr)
    return observed.outcomes


def _surprises(outcomes: Outcomes, outage: Outage) -> Iterator[str]:
    for (verb, thing), cells in outcomes.items():
        for by, outcome in cells.items():
            if outcome != expected(verb, thing, by, outage):
                yield f"{verb} on {thing} by {by}: {outcome}"


if __name__ == "__main__":
    PAGE.write_text(page({outage: _observed(outage) for outage in Outage}), encoding="utf-8")
