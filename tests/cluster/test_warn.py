"""An asset with ``onConflict: Warn``: others' writes to its targets succeed, and nothing of them is written."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.cluster.conftest import Operated, operator_in_a_cluster, until

from assetlock.cli.stack import Part

ADMINS = ("system:masters",)
PATCH = ("patch", "deployment", "web")


def stranger(operated: Operated, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """A cluster-admin who holds nothing."""
    where = ("-n", operated.namespace)
    return operated.cluster.kubectl(*args, *where, user="mallory", groups=ADMINS, stdin=stdin, check=False)


def deployment(operated: Operated) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    operated.create(made)
    # The deployment controller writes its first revision and status before the test compares anything.
    operated.wait("deployment/web", "jsonpath={.status.observedGeneration}=1")
    return made


def content(operated: Operated, kind: str = "deployment", name: str = "web") -> str:
    """The object, but for who owns which field."""
    found = operated.get(kind, name)
    found["metadata"].pop("managedFields", None)
    found["metadata"].pop("resourceVersion")
    found.pop("status", None)
    return json.dumps(found, sort_keys=True)


@pytest.fixture
def warned(operated: Operated) -> Operated:
    """A Deployment and a ConfigMap that alice holds through an asset that warns."""
    deployment(operated)
    operated.kubectl("create", "configmap", "settings", "--from-literal=colour=red")
    targets = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"},
    ]
    operated.asset("vm-1", onConflict="Warn", targets=targets)
    operated.held("first", reason="kernel update")
    return operated


def manifest(image: str = "two") -> str:
    container = {"name": "c", "image": image, "args": ["x"]}
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
    }
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    return json.dumps(body)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": "1-2-3"}
WRITES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "strategic merge patch": ((*PATCH, '-p={"spec":{"replicas":7}}'), None),
    "merge patch": ((*PATCH, "--type=merge", '-p={"spec":{"template":{"spec":{"hostNetwork":true}}}}'), None),
    "json patch": ((*PATCH, "--type=json", '-p=[{"op":"remove","path":"/spec/replicas"}]'), None),
    "replace": (("replace", "-f", "-"), manifest()),
    "apply": (("apply", "-f", "-"), manifest()),
    "server-side apply": (
        ("apply", "--server-side", "-f", "-"),
        json.dumps(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "labels": {"tier": "front"}},
            }
        ),
    ),
    "forced server-side apply": (
        ("apply", "--server-side", "--force-conflicts", "-f", "-"),
        manifest("three"),
    ),
    "set image": (("set", "image", "deployment/web", "c=four"), None),
    "label": (("label", "deployment", "web", "a=b"), None),
    "unfence": (("label", "deployment", "web", "assetlock.dev/fenced-"), None),
    "annotate": (("annotate", "deployment", "web", "a=b"), None),
    "owner": ((*PATCH, "-p", json.dumps({"metadata": {"ownerReferences": [OWNER]}})), None),
    "finalizer": ((*PATCH, '-p={"metadata":{"finalizers":["a.b/c"]}}'), None),
    "metadata through status": (
        (*PATCH, "--subresource=status", "--type=merge", '-p={"metadata":{"annotations":{"a":"b"}}}'),
        None,
    ),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_strangers_write_succeeds_with_a_warning_and_leaves_everything_as_it_was(
    warned: Operated, way: str
) -> None:
    command, stdin = WRITES[way]
    before = content(warned)
    done = stranger(warned, *command, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert "Warning: nothing was written, the change was dropped: Deployment web" in done.stderr
    assert "held by alice since 20" in done.stderr
    assert " until 20" in done.stderr
    assert "(kernel update)" in done.stderr
    assert "create an AssetLock" in done.stderr
    assert content(warned) == before


def test_a_dropped_write_leaves_no_new_version_for_watchers_to_see(warned: Operated) -> None:
    before = warned.get("configmap", "settings")
    stranger(warned, "label", "configmap", "settings", "a=b")
    assert warned.get("configmap", "settings") == before


def test_a_deletion_is_refused(warned: Operated) -> None:
    done = stranger(warned, "delete", "configmap", "settings")
    assert "Error from server (Locked)" in done.stderr
    assert "(Locked)" in stranger(warned, "delete", "configmap", "--all").stderr


def test_a_status_alone_is_written(warned: Operated) -> None:
    condition = {"type": "Paused", "status": "True"}
    patch = json.dumps({"status": {"conditions": [condition]}})
    done = stranger(warned, *PATCH, "--subresource=status", "--type=merge", "-p", patch)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_holder_writes_as_usual(warned: Operated) -> None:
    done = warned.kubectl("scale", "deployment", "web", "--replicas=0", user="alice", check=False)
    assert "Warning" not in done.stderr
    done = warned.kubectl(*PATCH, '-p={"spec":{"paused":true}}', user="alice")
    assert done.stderr == ""
    assert warned.get("deployment", "web")["spec"]["paused"] is True


def test_dropped_writes_are_told_on_the_asset(warned: Operated) -> None:
    stranger(warned, "label", "configmap", "settings", "a=b")
    events = (
        "get",
        "events.events.k8s.io",
        "--field-selector=reason=WriteDropped",
        "-o=jsonpath={.items[*].note}",
    )
    expected = f"dropped what mallory wrote to ConfigMap settings in namespace {warned.namespace}"
    until(lambda: expected in warned.kubectl(*events).stdout, "the Event")


def test_two_assets_both_have_to_warn(warned: Operated) -> None:
    targets = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]
    warned.asset("db", targets=targets)
    warned.held("second", asset="db")
    done = stranger(warned, "label", "configmap", "settings", "a=b")
    assert "(Locked)" in done.stderr
    change = (
        "patch",
        "asset",
        "db",
        "-n",
        warned.namespace,
        "--type=merge",
        '-p={"spec":{"onConflict":"Warn"}}',
    )
    warned.cluster.kubectl(*change, user="alice", groups=ADMINS)
    until(
        lambda: "Warning: nothing was" in stranger(warned, "label", "configmap", "settings", "a=b").stderr,
        "the webhook has seen the change",
    )


def test_with_the_webhook_down_the_policy_refuses() -> None:
    with operator_in_a_cluster() as (cluster, stack):
        operated = Operated(cluster, stack, "default")
        operated.asset("vm-1", "settings", onConflict="Warn")
        operated.held("first")
        operated.stack.kill(Part.ADMISSION)
        done = stranger(operated, "label", "configmap", "settings", "a=b")
        assert "(Forbidden)" in done.stderr
        assert "held by alice" in done.stderr
