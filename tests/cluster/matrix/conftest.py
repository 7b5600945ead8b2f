"""The matrix is tried once for each outage; its tests then look at what came of it."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster.matrix.cells import Outage
from tests.cluster.matrix.stage import set_up
from tests.cluster.matrix.trying import Observed, tried


@pytest.fixture(scope="module")
def outage(request: pytest.FixtureRequest) -> Outage:
    """What is down: a module of tests says it."""
    found: Outage = request.module.OUTAGE
    return found


@pytest.fixture(scope="module")
def observed(outage: Outage) -> Observed:
    """What became of every write meanwhile."""
    with set_up(outage) as cluster:
        return asyncio.run(tried(cluster, outage))
