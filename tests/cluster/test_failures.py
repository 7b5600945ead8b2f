"""What holds while processes die, sleep, and come back; each test has an operator of its own to hurt."""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest
from tests.cluster.conftest import SHORT_ELECTIONS, Operated, lease, operator_in_a_cluster, until

from assetlock.cli import stack as operator_stack
from assetlock.cli.stack import Part
from assetlock.core import names
from assetlock.dev import ControlPlane


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, operator_stack.Stack]]:
    """Not the one that other tests share: this one is hurt."""
    with operator_in_a_cluster(SHORT_ELECTIONS) as running:
        yield running


def test_with_every_process_dead_strangers_are_refused_and_the_holder_works(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.stack.kill()
    refused = operated.write("app", "bob")
    assert refused.returncode == 1
    assert "alice" in refused.stderr
    assert operated.write("app", "alice").returncode == 0
    operated.kubectl("create", "configmap", "unlocked", "--from-literal=value=0", user="bob")
    assert operated.write("unlocked", "bob").returncode == 0
    operated.stack.restart()


def test_a_lock_released_while_the_operator_was_dead_is_granted_on_when_it_is_back(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.lock("second", "bob", wait="10m")
    operated.kubectl("wait", "alk/second", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    operated.stack.kill(Part.CONTROLLER)
    operated.kubectl("delete", "alk", "first", user="alice")
    operated.cluster.remove_process(Part.CONTROLLER)
    operated.stack._launch(Part.CONTROLLER)
    operated.wait("alk/second", "condition=Acquired")
    assert operated.write("app", "alice").returncode == 1


def test_a_lock_that_expired_while_the_operator_was_dead_ends_when_it_is_back(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="2s", extendOnWrite=False)
    operated.stack.kill(Part.CONTROLLER)
    time.sleep(3)  # the lock's own time, and the allowed skew
    assert operated.write("app", "bob").returncode == 1, "the wall stands until the operator takes it down"
    operated.stack.restart(Part.CONTROLLER)
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")
    until(lambda: operated.write("app", "bob").returncode == 0, "bob may write again")


def test_what_a_locked_asset_no_longer_names_is_freed_although_the_operator_was_dead_when_it_changed(
    operated: Operated,
) -> None:
    operated.kubectl("create", "secret", "generic", "password")
    operated.asset("vm-1", "app")
    rights = ("--verb=get,patch,update", "--resource=assets.assetlock.dev,secrets")
    operated.kubectl("create", "role", "editor", *rights)
    operated.kubectl("create", "rolebinding", "editor", "--role=editor", "--user=alice")
    operated.held("first")
    operated.stack.kill(Part.CONTROLLER)
    targets = [{"apiVersion": "v1", "kind": "Secret", "name": "password"}]
    patch = json.dumps({"spec": {"targets": targets}})
    operated.kubectl("patch", "asset", "vm-1", "--type=merge", f"--patch={patch}", user="alice")
    assert not operated.unfenced("app")
    operated.stack.restart(Part.CONTROLLER)
    until(lambda: operated.unfenced("app"), "nobody names it any more")
    assert operated.get("alk", "first")["status"]["state"] == "Held"
    assert "labels" in operated.get("secret", "password")["metadata"]


@pytest.mark.parametrize("moment", range(5))
def test_a_grant_interrupted_anywhere_is_finished_by_the_next_process(
    operated: Operated, moment: int
) -> None:
    operated.asset("vm-1", "app")
    operated.lock("first")
    time.sleep(moment * 0.015)  # a grant takes some 50 ms: this lands before, between and after its writes
    operated.stack.kill(Part.CONTROLLER)
    operated.stack.restart(Part.CONTROLLER)
    assert operated.settled("first")["reason"] == "Granted"
    assert operated.get("alk", "first")["status"]["fencingToken"] == 1
    assert operated.write("app", "bob").returncode == 1
    assert operated.write("app", "alice").returncode == 0


def test_a_leader_that_slept_while_the_lock_went_on_changes_nothing_when_it_wakes(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="3s", extendOnWrite=False)
    operated.lock("second", "bob", wait="10m")
    operated.kubectl("wait", "alk/second", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    sleeper = operated.stack.running[Part.CONTROLLER].pid
    os.kill(sleeper, signal.SIGSTOP)
    try:
        standby = _standby(operated)
        operated.wait("alk/second", "condition=Acquired")
    finally:
        os.kill(sleeper, signal.SIGCONT)
    stamp = operated.get("configmap", "app")["metadata"]["annotations"]
    time.sleep(2)  # long enough for the sleeper to do what it was about to
    assert operated.get("configmap", "app")["metadata"]["annotations"] == stamp
    assert operated.get("alk", "first")["status"]["state"] == "Expired"
    assert operated.get("alk", "second")["status"]["state"] == "Held"
    assert operated.write("app", "alice").returncode == 1
    operated.cluster.remove_process(standby)
    operated.stack.restart(Part.CONTROLLER)


def test_a_quiet_life_of_a_lock_is_nine_writes(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.wait("ast/vm-1", "condition=Ready")
    operated.wait("ast/vm-1", "condition=TargetsPermitted")
    operated.held("first")
    operated.kubectl("delete", "alk", "first", user="alice")
    until(lambda: "labels" not in operated.get("configmap", "app")["metadata"], "the target is free")
    log = operated.stack.running[Part.CONTROLLER].log.read_text()
    entries = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    ours = [
        e["write"] for e in entries if e["message"] == "wrote" and e["asset"] == f"{operated.namespace}/vm-1"
    ]
    began = ours.index("CreateLease")
    assert {*ours[:began]} == {"PatchNamespace", "WriteAssetStatus"}, "label and conditions, before any lock"
    grant = ["CreateLease", "WriteAssetStatus", "PatchTarget", "WriteLockStatus"]
    end = ["DeleteLease", "WriteAssetStatus", "PatchTarget"]
    assert ours[began:] == [*grant, *end], "with the user's create and delete these are nine"


def test_a_handmade_lease_lives_through_an_outage_and_is_timed_by_its_own_renewal(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.create(lease("vm-1", "alice", leaseDurationSeconds=3600), user="alice")
    operated.stack.kill()
    renewed = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    patch = json.dumps({"spec": {"renewTime": renewed}})
    operated.kubectl("patch", "lease", "asset.vm-1", "--type=merge", f"-p={patch}", user="alice")
    operated.stack.restart()
    until(
        lambda: names.TOKEN_ANNOTATION in operated.get("lease", "asset.vm-1")["metadata"]["annotations"],
        "announced",
    )
    assert operated.write("app", "bob").returncode == 1


def _standby(operated: Operated) -> str:
    kubeconfig = operated.cluster.kubeconfig_for_service_account(
        names.OPERATOR_NAMESPACE, "assetlock-controller"
    )
    argv = [sys.executable, "-P", "-m", "assetlock.cli.main", "operator", "controller"]
    operated.cluster.add_process("standby", [*argv, "--kubeconfig", str(kubeconfig)])
    return "standby"
