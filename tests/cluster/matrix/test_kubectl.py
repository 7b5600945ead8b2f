"""The ways of kubectl that are more than one write, and what Kubernetes itself does after a write, in earnest."""

from __future__ import annotations

import json

import yaml
from tests.cluster.conftest import Operated, document, until
from tests.cluster.matrix.cells import Object

REVISION = "jsonpath={.metadata.annotations.deployment\\.kubernetes\\.io/revision}"


def test_replace_by_force_is_stopped_at_its_first_half(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    before = operated.get("configmap", "app")
    refused = operated.kubectl("replace", "--force", "-f", "-", user="bob", stdin=MANIFEST, check=False)
    assert "held by alice" in refused.stderr
    assert operated.get("configmap", "app") == before


def test_what_the_holder_replaces_by_force_is_fenced_again(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.kubectl("replace", "--force", "-f", "-", user="alice", stdin=MANIFEST)
    until(lambda: operated.write("app", "bob").returncode == 1, "the new object is fenced")
    assert operated.write("app", "alice").returncode == 0


def test_a_rollout_that_the_holder_starts_is_finished_and_undone(operated: Operated) -> None:
    _lock_deployment(operated)
    operated.kubectl("set", "image", "deployment/web", "c=two", user="alice")
    _have_pods_run(operated, "two")
    operated.kubectl("rollout", "status", "deployment/web", "--timeout=60s", user="alice")
    operated.kubectl("rollout", "undo", "deployment/web", user="alice")
    operated.wait("deployment/web", f"{REVISION}=3")
    refused = operated.kubectl("rollout", "undo", "deployment/web", user="bob", check=False)
    assert "held by alice" in refused.stderr


def test_neither_restart_nor_any_other_rollout_is_a_strangers(operated: Operated) -> None:
    _lock_deployment(operated)
    before = operated.get("deployment", "web")["metadata"]["generation"]
    for command in (
        ("rollout", "restart", "deployment/web"),
        ("rollout", "pause", "deployment/web"),
        ("set", "env", "deployment/web", "A=B"),
    ):
        done = operated.kubectl(*command, user="bob", check=False)
        assert "held by alice" in done.stderr, command
    assert operated.get("deployment", "web")["metadata"]["generation"] == before


def test_the_garbage_collector_takes_a_locked_object_only_after_its_lock(operated: Operated) -> None:
    operated.kubectl("create", "configmap", "owner")
    uid = operated.get("configmap", "owner")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    operated.create(_config_map(ownerReferences=[owner]))
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    operated.create(document("Asset", "vm-1", {"type": "VM", "targets": [target]}))
    operated.held("first")
    operated.kubectl("delete", "configmap", "owner")
    _wait_for_the_collector(operated)
    assert "deletionTimestamp" not in operated.get("configmap", "app")["metadata"]
    operated.kubectl("delete", "assetlock", "first", user="alice")
    until(lambda: not _exists(operated, "app"), "the collector has come back", seconds=90)


def _wait_for_the_collector(operated: Operated) -> None:
    """It takes what has the same owner and is not locked."""
    uid = "00000000-0000-4000-8000-000000000000"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": uid}
    operated.create(_config_map(name="orphan", ownerReferences=[owner]))
    until(lambda: not _exists(operated, "orphan"), "the collector has been here", seconds=60)


def _exists(operated: Operated, name: str) -> bool:
    return operated.kubectl("get", "configmap", name, "--ignore-not-found", "-o", "name").stdout != ""


def _config_map(**metadata: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", **metadata}}


MANIFEST = yaml.safe_dump({**_config_map(), "data": {"value": "forced"}})


def _lock_deployment(operated: Operated) -> None:
    operated.kubectl("create", "rolebinding", "edit", "--clusterrole=edit", "--user=alice", "--user=bob")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    operated.create(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    )
    operated.wait("deployment/web", f"{REVISION}=1")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    operated.create(document("Asset", "vm-1", {"type": "VM", "targets": [target]}))
    operated.held("first")


def _have_pods_run(operated: Operated, image: str) -> None:
    """What a kubelet reports when the pods of a revision are up."""
    pods = (
        "get",
        "pods",
        "-o",
        f"jsonpath={{.items[?(@.spec.containers[0].image=='{image}')].metadata.name}}",
    )
    until(lambda: operated.kubectl(*pods).stdout != "", f"there is a pod of {image}")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch = json.dumps({"status": {"phase": "Running", "conditions": [ready]}})
    for pod in operated.kubectl(*pods).stdout.split():
        operated.kubectl("patch", "pod", pod, "--subresource=status", f"--patch={patch}")
