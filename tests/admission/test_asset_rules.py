"""Who sets an asset's targets is asked for, and recorded."""

from __future__ import annotations

from typing import Any

from assetlock.admission.rules import assets as asset_rules
from assetlock.admission.verdict import Admitted, Refused
from assetlock.core import names
from tests.admission.reviews import applied, review, user

APP = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
ALL_WEB = {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"matchLabels": {"app": "web"}}}
ALICE = "alice\neditors\nsystem:authenticated"


def asset(*targets: dict[str, Any], setter: str | None = None) -> dict[str, Any]:
    annotations = {"annotations": {names.SETTER_ANNOTATION: setter}} if setter else {}
    metadata = {"name": "vm", "namespace": "shop", **annotations}
    return {"metadata": metadata, "spec": {"targets": list(targets)}}


def setter_after(old: dict[str, Any] | None, new: dict[str, Any], by: str = "alice") -> str | None:
    """Whom the Asset names after the webhook."""
    groups = ("editors", "system:authenticated")
    write = review("UPDATE" if old else "CREATE", by=user(by, *groups), old=old, new=new, kind="Asset")
    verdict = asset_rules.decided(write, [])
    assert isinstance(verdict, Admitted)
    annotations = applied(new, verdict.patch)["metadata"].get("annotations", {})
    return annotations.get(names.SETTER_ANNOTATION)


def test_who_makes_an_asset_with_targets_is_recorded_with_its_groups() -> None:
    assert setter_after(None, asset(APP)) == ALICE
    assert setter_after(None, asset(APP, setter="root\nsystem:masters")) == ALICE
    assert setter_after(None, asset()) is None


def test_who_changes_the_targets_takes_the_place_of_who_set_them_before() -> None:
    assert setter_after(asset(APP, setter="bob"), asset(ALL_WEB, setter="bob")) == ALICE


def test_who_changes_something_else_neither_takes_that_place_nor_clears_it() -> None:
    assert setter_after(asset(APP, setter="bob"), asset(APP)) == "bob"
    assert setter_after(asset(APP, setter="bob"), asset(APP, setter="root\nsystem:masters")) == "bob"


def test_a_changed_selector_or_namespace_is_another_target() -> None:
    narrow = {**ALL_WEB, "selector": {"matchLabels": {"app": "web", "tier": "db"}}}
    elsewhere = {**ALL_WEB, "namespace": "other"}
    write = review("UPDATE", by=user("alice"), old=asset(ALL_WEB), new=asset(narrow, elsewhere, ALL_WEB))
    added = asset_rules.new_targets(write)
    assert [(target.name, target.namespace) for target in added] == [("", "shop"), ("", "other")]


def test_a_refusal_names_every_object_of_a_kind_where_a_selector_would_reach_them() -> None:
    write = review("CREATE", by=user("alice"), new=asset(ALL_WEB))
    refusal = asset_rules.decided(write, asset_rules.new_targets(write))
    assert isinstance(refusal, Refused)
    assert "alice may not update every ConfigMap (v1, namespace shop)" in refusal.message
