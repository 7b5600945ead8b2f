"""``assetlock revoke``: ending the locks of others, and without an operator taking the whole fence down."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.conftest import SHORT_ELECTIONS, Operated, lease, operator_in_a_cluster, until
from tests.cluster.stamping import ADMINS
from tests.cluster.test_docs import ROOT, blocks, paste

from assetlock.cli.stack import Part, Stack
from assetlock.core import names
from assetlock.dev import ControlPlane

NO_INPUT, UNREACHABLE, NOT_YET, NO_RIGHT = os.EX_NOINPUT, os.EX_UNAVAILABLE, os.EX_TEMPFAIL, os.EX_NOPERM


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, Stack]]:
    """Not the one that other tests share: this one is stopped."""
    with operator_in_a_cluster(SHORT_ELECTIONS) as (cluster, stack):
        yield cluster, stack


@pytest.fixture
def held(operated: Operated) -> Operated:
    """Two ConfigMaps that alice holds, and bob waits for."""
    operated.asset("vm-1", "app", "db")
    operated.held("first", ttl="1h")
    operated.lock("second", "bob", wait="1h")
    operated.wait("alk/second", "jsonpath={.status.state}=Pending")
    return operated


@pytest.fixture
def stopped(held: Operated) -> Iterator[Operated]:
    """The same, with every process of ours dead."""
    held.stack.kill()
    yield held
    held.stack.restart()


def revoke(
    operated: Operated, *args: str, kubeconfig: pathlib.Path | None = None, asset: str = "vm-1"
) -> subprocess.CompletedProcess[str]:
    where = ("-n", operated.namespace, "--kubeconfig", str(kubeconfig or operated.cluster.kubeconfig))
    command = [sys.executable, "-m", "assetlock.cli.main", "revoke", asset, *where, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def as_user(operated: Operated, user: str, *groups: str) -> pathlib.Path:
    return operated.cluster.kubeconfig_for(user, *groups)


def status(operated: Operated) -> dict[str, Any]:
    found: dict[str, Any] = operated.get("asset", "vm-1")["status"]
    return found


def has_lease(operated: Operated) -> bool:
    return operated.kubectl("get", "lease", "asset.vm-1", check=False).returncode == 0


def test_the_holders_lock_ends_and_the_next_in_line_gets_it(held: Operated) -> None:
    done = revoke(held)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("revoked AssetLock first of alice since 20")
    held.wait("alk/second", "condition=Acquired")
    assert held.get("alk", "first")["status"]["state"] == "Revoked"
    assert held.condition("first")["message"] == "revoked by kubernetes-admin"


def test_a_lease_made_by_hand_is_revoked_too(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.create(lease("vm-1"), user="carol")
    until(lambda: bool(status(operated).get("holders")), "the Lease is fenced")
    assert "revoked Lease asset.vm-1 of carol" in revoke(operated).stdout
    assert not has_lease(operated)


def test_who_waits_for_the_rest_of_the_slots_goes_on_waiting(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.held("reader", mode="Shared")
    operated.lock("writer", "bob", wait="1h")
    operated.kubectl("wait", "--for=create", "lease/asset-1.vm-1", "--timeout=20s")
    done = revoke(operated)
    assert done.stdout.startswith("revoked AssetLock reader of alice since 20"), done.stderr
    assert "writer" not in done.stdout
    operated.wait("alk/writer", "condition=Acquired")


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_assets_delay_follows_and_a_second_time_does_not_cut_it_short(
    operated: Operated, by_hand: bool
) -> None:
    operated.asset("vm-1", "app", lockDelay="10m")
    if by_hand:
        operated.create(lease("vm-1"), user="alice")
        until(lambda: bool(status(operated).get("holders")), "the Lease is fenced")
    else:
        operated.held("first", ttl="1h")
    for _ in range(2):
        done = revoke(operated)
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nobody holds asset vm-1")
    until(lambda: status(operated)["holders"][0]["identity"] == "assetlock:lock-delay", "the delay begins")
    assert operated.create(lease("vm-1"), user="bob", check=False).returncode == 1


def test_nobody_else_marks_a_lock_as_revoked_and_nobody_in_anothers_name(held: Operated) -> None:
    mark = ("annotate", "lease", "asset.vm-1")
    refused = held.kubectl(*mark, "assetlock.dev/revoked-by=bob", user="bob", check=False)
    assert 'needs the verb "unlock"' in refused.stderr
    held.stack.kill(Part.ADMISSION)
    try:
        lie = held.kubectl(*mark, "assetlock.dev/revoked-by=bob", check=False)
    finally:
        held.stack.restart(Part.ADMISSION)
    assert "names who revokes the lock" in lie.stderr
    assert held.get("alk", "first")["status"]["state"] == "Held"
    held.kubectl(*mark, "assetlock.dev/revoked-by=bob")
    held.wait("alk/first", "jsonpath={.status.state}=Revoked")
    assert held.condition("first")["message"] == "revoked by kubernetes-admin"


def test_a_free_asset_needs_nothing_and_an_unknown_one_is_an_error(operated: Operated) -> None:
    operated.asset("vm-1")
    done = revoke(operated)
    assert (done.returncode, done.stdout) == (
        0,
        f"nobody holds asset vm-1 in namespace {operated.namespace}\n",
    )
    assert revoke(operated, asset="vm-2").returncode == NO_INPUT


def test_others_locks_need_the_verb_unlock(held: Operated) -> None:
    done = revoke(held, kubeconfig=as_user(held, "bob"))
    assert done.returncode == NO_RIGHT
    assert 'needs the verb "unlock"' in done.stderr
    assert held.get("alk", "first")["status"]["state"] == "Held"


def test_without_an_api_server_it_says_so(held: Operated, tmp_path: pathlib.Path) -> None:
    nowhere = held.cluster.kubeconfig.read_text().replace(held.cluster.server, "https://127.0.0.1:9")
    (tmp_path / "kubeconfig").write_text(nowhere)
    done = revoke(held, kubeconfig=tmp_path / "kubeconfig")
    assert done.returncode == UNREACHABLE


def test_offline_is_refused_while_an_operator_runs(held: Operated) -> None:
    done = revoke(held, "--offline")
    assert done.returncode == os.EX_USAGE
    assert "an operator runs" in done.stderr
    assert held.get("alk", "first")["status"]["state"] == "Held"


def test_without_an_operator_it_says_that_the_fence_stays(held: Operated) -> None:
    held.stack.kill(Part.CONTROLLER)
    try:
        done = revoke(held)
    finally:
        held.stack.restart(Part.CONTROLLER)
    assert done.returncode == NOT_YET
    assert "--offline" in done.stderr


def test_offline_clears_everything_in_order_and_grants_nothing(stopped: Operated) -> None:
    done = revoke(stopped, "--offline")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "AssetLock first: Revoked",
        "Lease asset.vm-1: deleted",
        "Asset vm-1: no holder; the fencing token stays 1",
        "ConfigMap app: stamp removed",
        "ConfigMap db: stamp removed",
        f"asset vm-1 in namespace {stopped.namespace} is free",
    ]
    assert "revoked by kubernetes-admin" in stopped.condition("first")["message"]
    assert stopped.get("alk", "second")["status"]["state"] == "Pending"
    assert not has_lease(stopped)
    assert (status(stopped)["holders"], status(stopped)["fencingToken"]) == ([], 1)
    assert all(stopped.unfenced(target) for target in ("app", "db"))
    assert stopped.write("app", "carol").returncode == 0


def test_offline_once_more_finds_nothing_to_do(stopped: Operated) -> None:
    revoke(stopped, "--offline")
    done = revoke(stopped, "--offline")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == [f"asset vm-1 in namespace {stopped.namespace} is free"]


def test_the_operator_goes_on_with_a_higher_token_where_offline_has_ended(held: Operated) -> None:
    held.stack.kill()
    try:
        revoke(held, "--offline")
    finally:
        held.stack.restart()
    held.wait("alk/second", "condition=Acquired")
    assert held.get("alk", "second")["status"]["fencingToken"] == 2
    assert held.get("alk", "first")["status"]["state"] == "Revoked"


def test_offline_leaves_the_delay_to_the_lease_and_to_the_operator_that_comes(operated: Operated) -> None:
    operated.asset("vm-1", "app", lockDelay="10m")
    operated.held("first", ttl="1h")
    operated.stack.kill()
    try:
        done = revoke(operated, "--offline")
        assert done.returncode == 0, done.stderr
        assert "Lease asset.vm-1: kept from everybody for the asset's lockDelay" in done.stdout
        assert operated.unfenced("app")
    finally:
        operated.stack.restart()
    until(
        lambda: "lock-delay" in operated.write("app", "alice").stderr, "the operator closes it for the rest"
    )


@pytest.mark.parametrize("steps", range(1, 5))
def test_offline_finishes_what_was_left_in_the_middle(stopped: Operated, steps: int) -> None:
    """As a crash would leave it: the first steps done by hand, and no more."""
    glass = {"user": "root", "groups": (*ADMINS, names.BREAK_GLASS_GROUP)}
    where = ("-n", stopped.namespace)
    ended = {"status": {"state": "Revoked", "finishTime": "2030-01-01T00:00:00Z"}}
    unstamped = {
        "metadata": {
            "labels": {names.FENCED_LABEL: None},
            "annotations": {names.stamp_key("vm-1", stopped.namespace): None},
        }
    }
    crash = [
        ("patch", "alk", "first", "--subresource=status", "--type=merge", f"-p={json.dumps(ended)}"),
        ("delete", "lease", "asset.vm-1"),
        ("patch", "asset", "vm-1", "--subresource=status", "--type=merge", '-p={"status":{"holders":[]}}'),
        ("patch", "configmap", "app", "--type=merge", f"-p={json.dumps(unstamped)}"),
    ]
    for step in crash[:steps]:
        stopped.cluster.kubectl(*step, *where, **glass)
    done = revoke(stopped, "--offline")
    assert done.returncode == 0, done.stderr
    assert stopped.get("alk", "first")["status"]["state"] == "Revoked"
    assert not has_lease(stopped)
    assert (status(stopped)["holders"], status(stopped)["fencingToken"]) == ([], 1)
    assert all(stopped.unfenced(target) for target in ("app", "db"))


def test_offline_needs_the_right_to_break_the_glass(stopped: Operated) -> None:
    done = revoke(stopped, "--offline", kubeconfig=as_user(stopped, "bob"))
    assert done.returncode == NO_RIGHT
    assert "bob needs the verb impersonate on users/bob and on groups/assetlock:break-glass" in done.stderr
    assert stopped.get("alk", "first")["status"]["state"] == "Held"


def test_offline_takes_nobodys_rights_but_the_callers(stopped: Operated) -> None:
    """Bob may break the glass, and write ConfigMaps, Leases and AssetLocks, but no statuses."""
    rights = (("users", "bob"), ("groups", names.BREAK_GLASS_GROUP))
    for resource, name in rights:
        role, rule = f"{stopped.namespace}-{resource}", f"--resource-name={name}"
        grant = ("create", "clusterrole", role, "--verb=impersonate", f"--resource={resource}", rule)
        stopped.cluster.kubectl(*grant)
        stopped.cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", "--user=bob")
    done = revoke(stopped, "--offline", kubeconfig=as_user(stopped, "bob"))
    assert done.returncode == NO_RIGHT
    assert "assetlocks/status" in done.stderr
    assert has_lease(stopped), "the AssetLock ends first, or nothing does"


def test_offline_works_for_one_who_impersonates_already(stopped: Operated, tmp_path: pathlib.Path) -> None:
    config = json.loads(stopped.cluster.kubeconfig.read_text())
    config["users"][0]["user"] |= {"as": "oncall", "as-groups": list(ADMINS)}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    done = revoke(stopped, "--offline", kubeconfig=tmp_path / "kubeconfig")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("acting as oncall in the groups system:masters, assetlock:break-glass")
    assert "revoked by oncall" in stopped.condition("first")["message"]


def test_the_fence_is_taken_down_as_the_page_shows(operated: Operated, tmp_path: pathlib.Path) -> None:
    page = ROOT / "docs" / "operations.md"
    online, offline = (block for block in blocks(page, "sh") if "revoke" in block)
    operated.kubectl("create", "deployment", "shop-db", "--image=postgres")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop-db"}
    operated.asset("shop-db", targets=[target])
    operated.held("patch-sunday", asset="shop-db")
    assert "revoked AssetLock patch-sunday of alice" in paste(operated, tmp_path, online)
    operated.held("patch-monday", asset="shop-db")
    operated.stack.kill()
    try:
        said = paste(operated, tmp_path, offline)
    finally:
        operated.stack.restart()
    [shown] = [block for block in blocks(page, "console") if "acting as" in block]
    expected = re.sub(r"amespace shop\b", f"amespace {operated.namespace}", shown).replace(
        "stays 7", "stays 2"
    )
    assert said.splitlines()[-6:] == expected.splitlines()[-6:]
