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
    shared.held("two", "alice", asset="web")
    refused = shared.write("app", "carol").stderr
    assert "asset db" in refused
    assert f"{shared.namespace}/web" in refused


def test_who_waits_for_the_other_asset_gets_it_when_the_object_is_free(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.lock("two", "bob", asset="web", wait="5m")
    until(lambda: "through asset db" in json.dumps(shared.get("alk", "two")), "it says why")
    assert shared.write("app", "alice").returncode == 0
    assert "through asset db" in shared.write("app", "bob", "2").stderr
    shared.kubectl("delete", "alk", "one", user="alice")
    shared.wait("alk/two", "condition=Acquired")
    assert stamps(shared) == {"web"}
    assert shared.write("app", "bob", "2").returncode == 0
    shared.kubectl("delete", "alk", "two", user="bob")
    until(lambda: shared.unfenced("app"), "nothing is left")


def test_who_does_not_wait_fails_and_reads_why(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.lock("two", "bob", asset="web")
    settled = shared.settled("two")
    assert settled["reason"] == "TargetLocked"
    assert "held by alice" in settled["message"]


def test_two_that_ask_at_once_for_two_assets_of_the_same_objects_get_them_one_after_the_other(
    operated: Operated,
) -> None:
    """Neither waits for the other while it has a part of them."""
    operated.asset("db", "app", "conf")
    targets = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name} for name in ("conf", "app")]
    operated.create(document("Asset", "web", {"targets": targets}))
    for number in range(5):
        ours, theirs = f"ours-{number}", f"theirs-{number}"
        operated.lock(ours, "alice", asset="db", wait="5m")
        operated.lock(theirs, "bob", asset="web", wait="5m")
        first = who_holds(operated, {ours: "alice", theirs: "bob"})
        for lock, user in sorted({ours: "alice", theirs: "bob"}.items(), key=lambda pair: pair[0] != first):
            operated.wait(f"alk/{lock}", "condition=Acquired")
            assert operated.write("app", user).returncode == 0
            assert operated.write("conf", user).returncode == 0
            operated.kubectl("delete", "alk", lock, user=user)


def who_holds(operated: Operated, locks: dict[str, str]) -> str:
    """The first of these locks to be held."""
    held: list[str] = []

    def found() -> bool:
        held.extend(
            lock for lock in locks if operated.get("alk", lock).get("status", {}).get("state") == "Held"
        )
        return bool(held)

    until(found, "one of them is held")
    return held[0]


def test_who_holds_both_writes(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.held("two", "alice", asset="web")
    assert shared.write("app", "alice").returncode == 0


def test_the_policy_alone_tells_of_both_as_well(shared: Operated) -> None:
    shared.held("one", "alice", asset="db")
    shared.held("two", "alice", asset="web")
    without_webhook = operator_dry_run(shared)
    for said in ("asset db", "asset web", "alice (token 1)"):
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
