"""Nobody locks what they could not change; and who could, but can't any longer, is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.conftest import Operated, document, until

from assetlock.core import names

MINE: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine"}
ALL_WEB: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "selector": {"matchLabels": {"app": "web"}},
}
ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "name": "assetlock-targets",
}


@pytest.fixture
def dave(operated: Operated) -> Operated:
    """A namespace in which dave may write Assets, and one ConfigMap."""
    operated.kubectl("create", "configmap", "mine")
    operated.kubectl("create", "configmap", "other")
    operated.kubectl("create", "role", "assets", "--verb=*", "--resource=assets.assetlock.dev")
    operated.kubectl("create", "rolebinding", "assets", "--role=assets", "--user=dave")
    grant(operated, "--resource-name=mine")
    return operated


def grant(operated: Operated, *which: str) -> None:
    operated.kubectl("create", "role", "targets", "--verb=update", "--resource=configmaps", *which)
    operated.kubectl("create", "rolebinding", "targets", "--role=targets", "--user=dave")


def revoke(operated: Operated) -> None:
    operated.kubectl("delete", "role,rolebinding", "targets")


def make(operated: Operated, *targets: dict[str, Any]) -> Any:
    return operated.create(document("Asset", "vm-1", {"targets": list(targets)}), user="dave", check=False)


def change(operated: Operated, *targets: dict[str, Any]) -> Any:
    patch = json.dumps({"spec": {"targets": list(targets)}})
    return operated.kubectl(
        "patch", "asset", "vm-1", "--type=merge", f"--patch={patch}", user="dave", check=False
    )


def permitted(operated: Operated) -> dict[str, Any]:
    conditions = operated.get("ast", "vm-1").get("status", {}).get("conditions", [])
    found: dict[str, Any] = next((c for c in conditions if c["type"] == "TargetsPermitted"), {})
    return found


FORBIDDEN = pytest.mark.parametrize(
    ("target", "named"),
    [
        ({**MINE, "name": "other"}, "ConfigMap other"),
        (ALL_WEB, "every ConfigMap"),
        ({**MINE, "namespace": "default"}, "ConfigMap mine (v1, namespace default)"),
        (ROLE, "ClusterRole assetlock-targets"),
    ],
    ids=["by name", "by selector", "in another namespace", "cluster-wide"],
)


@FORBIDDEN
def test_an_asset_of_what_its_maker_could_not_change_is_refused(
    dave: Operated, target: dict[str, Any], named: str
) -> None:
    refused = make(dave, MINE, target)
    assert refused.returncode == 1
    assert f"dave may not update {named}" in refused.stderr


@FORBIDDEN
def test_an_asset_is_not_turned_to_what_who_turns_it_could_not_change(
    dave: Operated, target: dict[str, Any], named: str
) -> None:
    assert make(dave, MINE).returncode == 0
    refused = change(dave, MINE, target)
    assert refused.returncode == 1
    assert f"dave may not update {named}" in refused.stderr


def test_selecting_needs_the_right_to_update_all_that_could_be_selected(dave: Operated) -> None:
    revoke(dave)
    grant(dave)
    assert make(dave, ALL_WEB).returncode == 0


def test_a_right_that_was_lost_shows_on_the_asset_which_still_locks(dave: Operated) -> None:
    assert make(dave, MINE).returncode == 0
    until(lambda: permitted(dave).get("status") == "True", "it is asked for")
    revoke(dave)
    patch = json.dumps({"spec": {"displayName": "asked again"}})
    dave.kubectl("patch", "asset", "vm-1", "--type=merge", f"--patch={patch}")
    until(lambda: permitted(dave).get("status") == "False", "the loss is noticed")
    assert permitted(dave)["reason"] == "RightLost"
    assert "dave, who set the targets, may not update ConfigMap mine" in permitted(dave)["message"]
    dave.held("first")


def test_who_set_the_targets_is_not_for_anybody_to_say(dave: Operated) -> None:
    assert make(dave, MINE).returncode == 0
    forged = json.dumps({"metadata": {"annotations": {names.SETTER_ANNOTATION: "root\nsystem:masters"}}})
    dave.kubectl("patch", "asset", "vm-1", "--type=merge", f"--patch={forged}", user="dave", check=False)
    setter = dave.get("ast", "vm-1")["metadata"]["annotations"][names.SETTER_ANNOTATION]
    assert setter == "dave\nsystem:authenticated"
