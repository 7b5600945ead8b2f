"""One object that two assets claim: whoever writes it must hold both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.conftest import Operated, document, until

from assetlock.core import names


@pytest.fixture
def shared(operated: Operated) -> Operated:
    """A ConfigMap that both `db` and `web` stand for."""
    operated.asset("db", "app")
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    operated.create(document("Asset", "web", {"targets": [target]}))
    return operated


def stamps(operated: Operated) -> set[str]:
    """The assets whose stamps the ConfigMap carries."""
    annotations = operated.get("configmap", "app")["metadata"].get("annotations", {})
    return {found[1] for key in annotations if (found := names.claimant(key)) is not None}


def test_a_stranger_is_told_of_both(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.held("two", "bob", asset="web")
    refused = shared.write("app", "carol").stderr
    assert "asset db" in refused
    assert f"{shared.namespace}/web" in refused


def test_the_holder_of_one_waits_for_the_other(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.held("two", "bob", asset="web")
    refused = shared.write("app", "alice").stderr
    assert "through asset web" in refused
    assert "held by bob" in refused
    shared.kubectl("delete", "alk", "two", user="bob")
    until(lambda: stamps(shared) == {"db"}, "the other stamp goes, this one stays")
    labels = shared.get("configmap", "app")["metadata"]["labels"]
    assert labels == {names.FENCED_LABEL: "true"}
    assert shared.write("app", "alice").returncode == 0
    assert shared.write("app", "bob", "2").returncode == 1
    shared.kubectl("delete", "alk", "one", user="alice")
    until(lambda: shared.unfenced("app"), "nothing is left")


def test_who_holds_both_writes(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.held("two", "alice", asset="web")
    assert shared.write("app", "alice").returncode == 0


def test_the_policy_alone_tells_of_both_as_well(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.held("two", "bob", asset="web")
    without_webhook = operator_dry_run(shared)
    for said in ("asset db", "asset web", "alice (token 1)", "bob (token 1)"):
        assert said in without_webhook


def operator_dry_run(operated: Operated) -> str:
    """A write that the webhook passes over and the policy meets like a stranger's; what is answered."""
    patch = json.dumps({"data": {"value": "1"}})
    return str(
        operated.cluster.kubectl(
            "patch", "configmap", "app", "-n", operated.namespace, "--type=merge", f"--patch={patch}",
            "--dry-run=server", f"--as={names.CONTROLLER_USER}", check=False,
        ).stderr
    )  # fmt: skip


def test_locks_of_many_assets_at_once_lose_no_stamp(operated: Operated) -> None:
    operated.kubectl("create", "configmap", "app", "--from-literal=value=0")
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    assets = [f"part-{number}" for number in range(8)]
    operated.create(*(document("Asset", name, {"targets": [target]}) for name in assets))
    locks: list[dict[str, Any]] = [document("AssetLock", name, {"assetName": name}) for name in assets]
    operated.create(*locks, user="alice")
    for name in assets:
        operated.wait(f"alk/{name}", "condition=Acquired")
    assert stamps(operated) == set(assets)
    operated.kubectl("delete", "alk", *assets, user="alice")
    until(lambda: operated.unfenced("app"), "all of them are gone")
