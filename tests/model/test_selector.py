"""Selectors mean what they mean elsewhere in Kubernetes, and subjects are users or groups."""

from __future__ import annotations

from typing import Any

import pytest

from assetlock.model.selector import LabelSelector
from assetlock.model.subject import Subject

LABELS = {"env": "prod", "team": "shop"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"env": "prod"}}, True),
        ({"matchLabels": {"env": "prod", "tier": "db"}}, False),
        ({"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod", "stage"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["db"]}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        (
            {
                "matchLabels": {"env": "prod"},
                "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["shop"]}],
            },
            False,
        ),
    ],
)
def test_a_selector_selects_by_labels(selector: dict[str, Any], matches: bool) -> None:
    assert LabelSelector.model_validate(selector).matches(LABELS) is matches


def test_a_subject_stands_for_a_user_or_a_group() -> None:
    robot = Subject(kind="ServiceAccount", name="patcher", namespace="shop")
    assert (robot.username, robot.group) == ("system:serviceaccount:shop:patcher", None)
    assert (Subject(kind="User", name="ada").username, Subject(kind="Group", name="sre").username) == (
        "ada",
        None,
    )
    assert Subject(kind="Group", name="sre").group == "sre"
