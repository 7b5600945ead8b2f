"""What alerts and dashboard ask Prometheus for is well-formed, and is there."""

from __future__ import annotations

import datetime
import json
import re
import types
from typing import Any, cast

import promql_parser
import pytest
import yaml
from charts.tools import helm

from assetlock.admission import metrics as admission
from assetlock.controller.health import Health

RULES = yaml.safe_load((helm.CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
PANELS = json.loads((helm.CHART / "files" / "dashboard.json").read_text())["panels"]
ALERTS = [rule["expr"] for rule in RULES]
CHARTS = [target["expr"] for panel in PANELS for target in panel["targets"]]


def exposed() -> set[str]:
    """The names of all samples that both processes expose."""
    controller = types.SimpleNamespace(
        now=datetime.datetime.now(datetime.UTC), locks=[], assets=[], fresh=True, queued=(0, 0.0)
    )
    told = types.SimpleNamespace(leads=True, ages=lambda: {"assets": 1.0}, longest_lag=lambda: 0.0)
    families = list(Health(cast(Any, controller), *[cast(Any, told)] * 3).collect())
    admission.DECISIONS.labels("fence", "admitted")
    admission.SECONDS.labels("fence")
    for each in (admission.DECISIONS, admission.SECONDS, admission.BREAK_GLASS):
        families += each.collect()
    return {sample.name for family in families for sample in family.samples}


@pytest.mark.parametrize("expression", [*ALERTS, *CHARTS])
def test_every_expression_is_promql_about_something_that_is_exposed(expression: str) -> None:
    promql_parser.parse(expression)
    asked = set(re.findall(r"assetlock_\w+", expression))
    assert asked
    assert asked <= exposed()


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
