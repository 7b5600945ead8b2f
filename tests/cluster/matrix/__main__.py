"""Tries the whole matrix and writes the page: ``make matrix``."""

from __future__ import annotations

import asyncio
import sys

from tests.cluster.matrix.cells import Outage
from tests.cluster.matrix.page import PAGE, Outcomes, page
from tests.cluster.matrix.stage import set_up
from tests.cluster.matrix.trying import tried


def _observed(outage: Outage) -> Outcomes:
    print(f"trying: {outage}", file=sys.stderr)
    with set_up(outage) as cluster:
        return asyncio.run(tried(cluster, outage)).outcomes


if __name__ == "__main__":
    PAGE.write_text(page({outage: _observed(outage) for outage in Outage}), encoding="utf-8")
