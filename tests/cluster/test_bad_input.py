"""Nonsense, lies and bad luck: each gets a clear refusal, or a condition that says what to do."""

from __future__ import annotations

import json
import time

import pytest
from tests.cluster.conftest import Operated, document, lease, until

from assetlock.cli.stack import Part


def test_an_unknown_asset(operated: Operated) -> None:
    operated.lock("first", asset="nowhere")
    settled = operated.settled("first")
    assert settled["reason"] == "AssetNotFound"
    assert "'nowhere'" in settled["message"]


def test_a_lock_that_waits_for_its_asset_to_be_made(operated: Operated) -> None:
    operated.lock("first", wait="1m")
    operated.kubectl("wait", "alk/first", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    assert operated.condition("first", "Acquired")["reason"] == "AssetNotFound"
    operated.asset("vm-1")
    operated.wait("alk/first", "condition=Acquired")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"mode": "Sideways"}, 'supported values: "Exclusive"'),
        ({"ttl": "0s"}, "zero"),
        ({"ttl": "PT0S"}, "zero"),
        ({"ttl": "-5m"}, "a duration is written like"),
        ({"ttl": "banana"}, "a duration is written like"),
        ({"ttl": "P1Y"}, "a duration is written like"),
        ({"ttl": "P400D"}, "24h"),
        ({"ttl": "2d"}, 'invalid duration "2d": use 48h or P2D'),
        ({"ttl": 30}, 'spec.ttl: 30 has no unit; write "30s" or "30m"'),
        ({"wait": 5}, '5 has no unit; write "5s" or "5m"'),
        ({"holder": "alice"}, "write username there: holder: {username: alice}"),
        ({"wait": "soon"}, "a duration is written like"),
        ({"assetName": "a" * 253}, "DNS subdomain"),
        ({"assetName": "vm..1"}, "DNS subdomain"),
        ({"priority": 100000}, "1000"),
    ],
)
def test_locks_that_make_no_sense_are_refused_with_what_would(
    operated: Operated, spec: dict[str, object], said: str
) -> None:
    refused = operated.create(
        document("AssetLock", "first", {"assetName": "vm-1", **spec}), user="alice", check=False
    )
    assert refused.returncode == 1
    assert said in refused.stderr


def test_a_lock_without_a_spec_is_refused_with_what_to_write(operated: Operated) -> None:
    bare = {"apiVersion": "assetlock.dev/v1alpha1", "kind": "AssetLock", "metadata": {"name": "first"}}
    refused = operated.create(bare, user="alice", check=False)
    assert refused.returncode == 1
    assert "write at least assetName" in refused.stderr
    assert "InternalError" not in refused.stderr


def test_an_asset_whose_kind_is_served_by_a_server_that_is_down_is_refused_naming_that(
    operated: Operated,
) -> None:
    group = f"{operated.namespace}.example.com"
    operated.cluster.kubectl("create", "-f", "-", stdin=json.dumps(unserved(group, operated.namespace)))
    try:
        target = {"apiVersion": f"{group}/v1", "kind": "Gauge", "name": "x"}

        def refusal() -> str:
            body = document("Asset", "vm-1", {"targets": [target]})
            return str(operated.create(body, check=False).stderr)

        until(
            lambda: f"see: kubectl get apiservice v1.{group}; then try again" in refusal(),
            "a refusal in words",
        )
    finally:
        operated.cluster.kubectl("delete", "apiservice", f"v1.{group}")


def unserved(group: str, namespace: str) -> dict[str, object]:
    """An APIService of which nothing serves the kinds."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": "nowhere", "namespace": namespace},
        },
    }


def test_a_lock_on_itself_twice_is_told_by_which_of_ones_own_locks_the_asset_is_held(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.lock("second")
    settled = operated.settled("second")
    assert (settled["reason"], settled["status"]) == ("Locked", "True")
    assert "held by alice (first) since" in settled["message"]
    operated.lock("third", wait="1h")
    operated.wait("alk/third", "jsonpath={.status.waitsFor}=alice (first)")
    assert operated.write("app", "alice").returncode == 0


def test_the_same_lock_applied_twice_is_one_acquisition(operated: Operated) -> None:
    operated.asset("vm-1")
    manifest = json.dumps(document("AssetLock", "first", {"assetName": "vm-1", "ttl": "1h"}))
    operated.kubectl("apply", "-f", "-", user="alice", stdin=manifest)
    operated.wait("alk/first", "condition=Acquired")
    again = operated.kubectl("apply", "-f", "-", user="alice", stdin=manifest)
    assert "unchanged" in again.stdout
    assert operated.get("alk", "first")["status"]["fencingToken"] == 1
    assert operated.kubectl("create", "-f", "-", user="alice", stdin=manifest, check=False).returncode == 1


def test_a_lock_can_not_take_over_from_itself(operated: Operated) -> None:
    operated.asset("vm-1")
    refused = operated.create(
        document("AssetLock", "first", {"assetName": "vm-1", "takeOver": "first"}), check=False
    )
    assert "a lock can't take over from itself" in refused.stderr


def test_a_shared_lock_of_an_asset_for_one_is_its_only_holder(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", mode="Shared")
    operated.lock("second", "bob", mode="Shared")
    assert operated.settled("second")["reason"] == "Locked"
    assert operated.write("app", "bob").returncode == 1


@pytest.mark.parametrize("name", ["a" * 253, "a.b" + "a" * 61])
def test_an_asset_name_must_be_a_short_dns_subdomain(operated: Operated, name: str) -> None:
    refused = operated.create(document("Asset", name, {"type": "VM"}), check=False)
    assert "DNS subdomain" in refused.stderr


def test_a_ttl_above_the_assets_longest_is_clipped_and_says_so(operated: Operated) -> None:
    operated.asset("vm-1", maxTTL="10m")
    operated.held("first", ttl="23h")
    assert "23h clipped to 10m" in operated.condition("first", "Acquired")["message"]


def test_a_target_that_does_not_exist_yet_is_fenced_as_soon_as_it_does(operated: Operated) -> None:
    operated.create(
        document("Asset", "vm-1", {"targets": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "later"}]})
    )
    operated.held("first")
    fenced = [c for c in operated.get("ast", "vm-1")["status"]["conditions"] if c["type"] == "Fenced"]
    assert fenced[0]["reason"] == "TargetNotFound"
    make = ("create", "configmap", "later", "--from-literal=value=0")
    assert "is locked through asset vm-1" in operated.kubectl(*make, user="bob", check=False).stderr
    operated.kubectl(*make, user="alice")
    operated.kubectl(
        "wait", "configmap/later", r"--for=jsonpath={.metadata.labels.assetlock\.dev/fenced}=true"
    )
    assert operated.write("later", "bob").returncode == 1


def test_a_target_deleted_and_made_again_while_locked_is_fenced_again(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.kubectl("delete", "configmap", "app", user="alice")
    operated.kubectl("create", "configmap", "app", "--from-literal=value=0", user="alice")
    operated.kubectl("wait", "configmap/app", r"--for=jsonpath={.metadata.labels.assetlock\.dev/fenced}=true")
    assert operated.write("app", "bob").returncode == 1
    assert operated.write("app", "alice").returncode == 0


def test_a_target_of_a_kind_that_does_not_exist_can_not_be_locked(operated: Operated) -> None:
    target = {"apiVersion": "example.com/v1", "kind": "Nonsense", "name": "x"}
    operated.create(document("Asset", "vm-1", {"targets": [target]}))
    operated.lock("first")
    settled = operated.settled("first")
    assert settled["reason"] == "NotFenceable"
    assert "example.com/v1" in settled["message"]
    assert operated.kubectl("get", "lease", "asset.vm-1", check=False).returncode == 1


def test_a_target_without_room_for_the_stamp_is_not_announced_as_locked(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    for number in range(2):
        full = json.dumps({"metadata": {"annotations": {f"filler-{number}": "x" * 131_060}}})
        operated.kubectl("patch", "configmap", "app", "--type=merge", "--patch-file=/dev/stdin", stdin=full)
    operated.lock("first")
    settled = operated.settled("first")
    assert settled["reason"] == "NotFenceable"
    assert "can't be stamped" in settled["message"]
    operated.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=10s")


@pytest.mark.parametrize("patch", [{"status": {"state": "Held"}}, {"spec": {"holder": {"username": "bob"}}}])
def test_an_ordinary_user_changes_neither_status_nor_holder(
    operated: Operated, patch: dict[str, object]
) -> None:
    operated.asset("vm-1")
    operated.held("first")
    operated.lock("second", "bob", wait="5m")
    operated.kubectl("wait", "alk/second", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    status = ["--subresource=status"] if "status" in patch else []
    operated.cluster.kubectl(
        "create", "clusterrolebinding", operated.namespace, "--clusterrole=cluster-admin", "--user=bob"
    )
    try:
        refused = operated.kubectl(
            "patch",
            "alk",
            "second",
            "--type=merge",
            f"-p={json.dumps(patch)}",
            *status,
            user="bob",
            check=False,
        )
    finally:
        operated.cluster.kubectl("delete", "clusterrolebinding", operated.namespace)
    holder = operated.get("alk", "second")
    assert refused.returncode == 1 or holder["spec"]["holder"]["username"] == "bob"
    assert holder["status"]["state"] == "Pending"
    if "spec" in patch:
        assert holder["spec"]["holder"] == {"username": "bob"}


def test_nobody_names_another_holder_without_the_verb_delegate(operated: Operated) -> None:
    operated.asset("vm-1")
    refused = operated.lock("first", "bob", holder={"username": "alice"}, check=False)
    assert refused.returncode == 1
    assert "delegate" in refused.stderr


@pytest.mark.parametrize("seconds", [2147483647, 0, -1])
def test_leases_of_absurd_durations_are_refused(operated: Operated, seconds: int) -> None:
    operated.asset("vm-1")
    refused = operated.create(lease("vm-1", leaseDurationSeconds=seconds), user="alice", check=False)
    assert refused.returncode == 1
    assert "leaseDurationSeconds" in refused.stderr


def test_a_lease_that_claims_to_be_renewed_in_2099_gets_the_servers_time(operated: Operated) -> None:
    operated.asset("vm-1")
    future = "2099-01-01T00:00:00.000000Z"
    operated.create(lease("vm-1", renewTime=future, acquireTime=future, leaseTransitions=99), user="alice")
    spec = operated.get("lease", "asset.vm-1")["spec"]
    assert not spec["renewTime"].startswith("2099")
    assert not spec["acquireTime"].startswith("2099")
    assert spec["leaseTransitions"] != 99


def test_a_lease_without_a_duration_gets_the_assets_default(operated: Operated) -> None:
    operated.asset("vm-1", defaultTTL="7m")
    operated.create(lease("vm-1", leaseDurationSeconds=None), user="alice")
    assert operated.get("lease", "asset.vm-1")["spec"]["leaseDurationSeconds"] == 420


def test_an_asset_deleted_while_locked_and_waited_for_frees_its_targets_and_keeps_the_waiters(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.lock("second", "bob", wait="5m")
    operated.kubectl("wait", "alk/second", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    assert operated.kubectl("delete", "ast", "vm-1", check=False).returncode == 1
    me = ["--as=kubernetes-admin", "--as-group=system:masters", "--as-group=assetlock:break-glass"]
    operated.kubectl("delete", "ast", "vm-1", *me)
    operated.wait("alk/first", "jsonpath={.status.state}=Revoked")
    assert operated.condition("first")["reason"] == "AssetDeleted"
    operated.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=10s")
    assert operated.get("alk", "second")["status"]["state"] == "Pending"
    operated.create(document("Asset", "vm-1", {"type": "VM"}))
    operated.wait("alk/second", "condition=Acquired")
    until(lambda: operated.unfenced("app"), "the fence comes down")
    assert operated.write("app", "bob").returncode == 0


def test_a_terminating_lease_is_not_granted_into(operated: Operated) -> None:
    operated.asset("vm-1")
    body = lease("vm-1")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    operated.create(body, user="alice")
    operated.kubectl("delete", "lease", "asset.vm-1", "--wait=false", user="alice")
    operated.lock("second", "bob", wait="5m")
    operated.kubectl(
        "wait",
        "alk/second",
        "--for=jsonpath={.status.conditions[0].reason}=LeaseTerminating",
        "--timeout=10s",
    )
    operated.kubectl(
        "patch", "lease", "asset.vm-1", "--type=merge", '-p={"metadata":{"finalizers":null}}', user="alice"
    )
    operated.wait("alk/second", "condition=Acquired")


def test_a_lease_of_that_name_without_our_label_is_in_the_way_but_not_hammered(operated: Operated) -> None:
    operated.asset("vm-1")
    body = lease("vm-1")
    del body["metadata"]["labels"]
    operated.create(body, user="alice")
    operated.lock("first", "bob", wait="5m")
    operated.kubectl("wait", "ast/vm-1", "--for=condition=Ready=False", "--timeout=20s")
    [ready] = [c for c in operated.get("ast", "vm-1")["status"]["conditions"] if c["type"] == "Ready"]
    assert (ready["reason"], "asset.vm-1" in ready["message"]) == ("WriteFailed", True)
    time.sleep(3)  # time for a hundred attempts, were there no backoff
    log = operated.stack.running[Part.CONTROLLER].log.read_text()
    attempts = [
        line
        for line in log.splitlines()
        if f"{operated.namespace}/vm-1" in line and "write did not go through" in line
    ]
    assert 1 <= len(attempts) <= 10
    operated.kubectl("delete", "lease", "asset.vm-1", user="alice")
    operated.wait("alk/first", "condition=Acquired")
