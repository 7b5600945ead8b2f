"""The manifests come from the chart, and nothing else does."""

from __future__ import annotations

from charts.tools import manifests


def test_the_manifests_are_what_the_chart_renders_to() -> None:
    assert not manifests.outdated(), "run: make manifests"
