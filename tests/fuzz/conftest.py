"""How many reviews are thrown: some thousands in the tests, 100,000 by ``make fuzz``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.fuzz.app import App

settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("REVIEWS", "4000")) // 8,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    running = App()
    yield running
    running.close()
