"""New objects: under a locked name, and with labels that a locked asset selects."""

from __future__ import annotations

from typing import Any

import pytest

from assetlock.admission.facts import AssetFacts, asset_facts
from assetlock.admission.review import Review
from assetlock.admission.rules import creations as creation_rules_
from assetlock.admission.upkeep.creation_rules import rules_for
from assetlock.core import names
from assetlock.kube.resources import ASSETS, CONFIG_MAPS, DEPLOYMENTS, LEASES, NAMESPACES, Resource
from tests.admission.reviews import config_map, review, user

NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}
SELECTED = {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"matchLabels": {"app": "shop"}}}


def locked(*targets: dict[str, Any], namespace: str = "shop", holder: str = "alice") -> AssetFacts:
    return asset_facts(
        {
            "metadata": {"namespace": namespace},
            "spec": {"targets": list(targets), "exempt": ["provider"]},
            "status": {"fencingToken": 7, "holders": [{"identity": holder}]},
        }
    )


def creation(by: str = "bob", *groups: str, **metadata: Any) -> Review:
    return review("CREATE", by=user(by, *groups), new=config_map(**metadata))


def admitted(asked: Review, asset: AssetFacts) -> bool:
    return creation_rules_.admits(asked, creation_rules_.claims_on(asked, {("shop", "vm"): asset}))


@pytest.mark.parametrize(
    ("asset", "metadata", "passes"),
    [
        (locked(NAMED), {}, False),
        (locked(NAMED), {"name": "other"}, True),
        (locked({**NAMED, "namespace": "elsewhere"}), {}, True),
        (locked({**NAMED, "namespace": "shop"}, namespace="ops"), {}, False),
        (locked({**NAMED, "kind": "Secret"}), {}, True),
        (locked({**NAMED, "apiVersion": "apps/v1"}), {}, True),
        (locked(SELECTED), {"name": "new", "labels": {"app": "shop"}}, False),
        (locked(SELECTED), {"name": "", "generateName": "new-", "labels": {"app": "shop"}}, False),
        (locked(SELECTED), {"labels": {"app": "other"}}, True),
    ],
)
def test_what_would_be_a_target_is_not_made_by_strangers(
    asset: AssetFacts, metadata: dict[str, Any], passes: bool
) -> None:
    assert admitted(creation(**metadata), asset) is passes


@pytest.mark.parametrize(
    "asked",
    [
        creation("alice"),
        creation("provider"),
        creation("bob", names.BREAK_GLASS_GROUP),
        creation("system:serviceaccount:kube-system:replicaset-controller"),
    ],
    ids=["the holder", "who is exempt", "broken glass", "a controller of the holder's things"],
)
def test_these_may_make_it(asked: Review) -> None:
    assert admitted(asked, locked(NAMED))


def test_the_garbage_collector_and_the_autoscaler_may_not() -> None:
    for name in ("generic-garbage-collector", "horizontal-pod-autoscaler"):
        assert not admitted(creation(f"system:serviceaccount:kube-system:{name}"), locked(NAMED))


def test_an_asset_that_nobody_holds_claims_nothing() -> None:
    free = asset_facts({"metadata": {"namespace": "shop"}, "spec": {"targets": [NAMED]}})
    assert admitted(creation(), free)


def test_a_selector_that_can_not_be_read_selects_nothing() -> None:
    assert admitted(creation(), locked({**SELECTED, "selector": {"matchLabels": 7}}))


def test_the_rules_ask_about_the_kinds_of_targets_and_nothing_that_runs_the_cluster() -> None:
    custom = Resource("example.com", "v1", "fleets", "Fleet", namespaced=False)
    rules = rules_for([CONFIG_MAPS, DEPLOYMENTS, DEPLOYMENTS, custom, LEASES, NAMESPACES, ASSETS])
    assert [(rule["apiGroups"], rule["resources"], rule["scope"]) for rule in rules] == [
        ([""], ["configmaps"], "Namespaced"),
        (["apps"], ["deployments"], "Namespaced"),
        (["example.com"], ["fleets"], "Cluster"),
    ]
    assert {operation for rule in rules for operation in rule["operations"]} == {"CREATE"}


def test_a_node_that_is_a_target_may_still_register_itself() -> None:
    node = {"metadata": {"name": "n-1"}}
    asset = locked({"apiVersion": "v1", "kind": "Node", "name": "n-1"})

    def by(name: str) -> Review:
        return review("CREATE", by=user(name), new=node, kind="Node")

    assert admitted(by("system:node:n-1"), asset)
    assert not admitted(by("system:node:n-2"), asset)
