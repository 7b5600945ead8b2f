"""Whoever takes assetlock out of a cluster leaves nothing behind that blocks a write."""

from __future__ import annotations

import datetime
import subprocess
import sys

from tests.cluster.conftest import Operated, document, lease, operator_in_a_cluster, until

from assetlock.cli.stack import Stack
from assetlock.core import names
from assetlock.dev import ControlPlane
from assetlock.model.times import format_time

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}


def test_uninstalling_with_locks_held_frees_everything_and_keeps_the_assets_if_one_says_so() -> None:
    with operator_in_a_cluster() as (cluster, stack):
        operated = shop(cluster, stack)
        token = operated.get("asset", "vm-1")["status"]["fencingToken"]
        said = uninstall(operated, "--keep-definitions")
        assert "suspended MaintenanceWindow night" in said
        assert "deleted AssetLock first" in said
        assert "freed Deployment" not in said, "the operator does that"
        assert_everything_is_free(operated)
        kept = operated.get("asset", "vm-1")["status"]
        assert (kept["lockState"], kept["fencingToken"]) == ("Unlocked", token)
        assert operated.get("mw", "night")["spec"]["suspend"] is True
        assert "deleted CustomResourceDefinition assets.assetlock.dev" in uninstall(operated)


def test_uninstalling_with_locks_held_and_no_operator_leaves_nothing_behind() -> None:
    with operator_in_a_cluster() as (cluster, stack):
        operated = shop(cluster, stack)
        stack.kill()
        assert "freed Deployment web" in uninstall(operated)
        assert_everything_is_free(operated)
        ours = ("get", "mutatingwebhookconfigurations,clusterroles,clusterrolebindings,crds", "--output=name")
        assert "assetlock" not in cluster.kubectl(*ours).stdout
        gone = ("get", "namespace", names.OPERATOR_NAMESPACE, "--ignore-not-found")
        until(lambda: not cluster.kubectl(*gone).stdout, "the operator's namespace goes", seconds=60)
        assert uninstall(operated) == "", "doing it twice changes nothing"


def assert_everything_is_free(operated: Operated) -> None:
    cluster = operated.cluster
    for target in ("by-lock", "by-lease", "by-window"):
        assert operated.unfenced(target)
        assert operated.write(target, "bob").returncode == 0
    scale = ("scale", "deployment", "web", "--replicas=3", "--namespace=shop")
    cluster.kubectl(*scale, user="bob", groups=("system:masters",))
    policies = ("get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "--output=name")
    assert "assetlock" not in cluster.kubectl(*policies).stdout
    leases = ("get", "leases", "--all-namespaces", f"--selector={names.ASSET_LABEL}", "--output=name")
    assert not cluster.kubectl(*leases).stdout


def shop(cluster: ControlPlane, stack: Stack) -> Operated:
    """A namespace in which everything is locked: through an AssetLock, by a Lease, and by a window."""
    cluster.kubectl("create", "namespace", "shop")
    operated = Operated(cluster, stack, "shop")
    hold_everything(operated)
    return operated


def hold_everything(operated: Operated) -> None:
    operated.create(DEPLOYMENT)
    operated.kubectl("create", "configmap", "by-lock", "--from-literal=value=0")
    targets = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "by-lock"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    ]
    operated.create(document("Asset", "vm-1", {"type": "VM", "targets": targets}))
    operated.asset("vm-2", "by-lease")
    operated.asset("vm-3", "by-window")
    operated.held("first")
    operated.create(lease("vm-2", leaseDurationSeconds=3600), user="alice")
    now = datetime.datetime.now(datetime.UTC)
    start, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1)
    window = {"kind": "Block", "start": format_time(start), "end": format_time(end), "assetNames": ["vm-3"]}
    operated.create(document("MaintenanceWindow", "night", window))
    for target in ("by-lock", "by-lease", "by-window"):
        until(lambda target=target: operated.write(target, "bob").returncode != 0, f"{target} is locked")


def uninstall(operated: Operated, *options: str) -> str:
    """Run the command; gives what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "assetlock.cli.main", "uninstall", *options],
        env=operated.cluster.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
