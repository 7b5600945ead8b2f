"""What carries no labels is fenced as well: scaling, eviction, looking inside, and deleting whole namespaces."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.conftest import BREAK_GLASS, Operated, document, until

from assetlock.cli.stack import Part
from assetlock.core import names

ADMINS = ("system:masters",)
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
POD = {"apiVersion": "v1", "kind": "Pod", "name": "db-0"}
SCALE = ("scale", "deployment/web", "--replicas=5")
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}


def stranger(operated: Operated, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """A cluster-admin who holds nothing."""
    where = ("-n", operated.namespace)
    return operated.cluster.kubectl(*where, *args, user="mallory", groups=ADMINS, stdin=stdin, check=False)


def holder(operated: Operated, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Whoever holds the lock, with all rights."""
    where = ("-n", operated.namespace)
    return operated.cluster.kubectl(*where, *args, user="alice", groups=ADMINS, stdin=stdin, check=False)


def evict(operated: Operated, pod: str) -> tuple[tuple[str, ...], str]:
    """What evicts a pod: a kubectl command, and its input."""
    body = {**EVICTION, "metadata": {"name": pod, "namespace": operated.namespace}}
    path = f"/api/v1/namespaces/{operated.namespace}/pods/{pod}/eviction"
    return ("create", "--raw", path, "--filename=-"), json.dumps(body)


def make_workload(operated: Operated) -> None:
    """A Deployment without pods, and a pod."""
    container = {"name": "c", "image": "one"}
    operated.kubectl("create", "deployment", "web", "--image=one", "--replicas=0")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "db-0"},
        "spec": {"containers": [container]},
    }
    operated.create(pod)
    operated.wait("deployment/web", "jsonpath={.status.observedGeneration}=1")


@pytest.fixture
def locked(operated: Operated) -> Operated:
    """A Deployment and a pod that alice holds; nobody else is to run commands in the pod."""
    make_workload(operated)
    operated.asset("vm-1", targets=[WEB, POD], guardedSubresources=["exec"])
    operated.held("first", reason="kernel update")
    return operated


@contextlib.contextmanager
def out_of_order(operated: Operated, *parts: Part) -> Iterator[None]:
    """With these processes killed, all of them if none is named."""
    operated.stack.kill(*parts)
    try:
        yield
    finally:
        operated.stack.restart(*parts)


def annotations(operated: Operated) -> dict[str, str]:
    found = json.loads(operated.kubectl("get", "namespace", operated.namespace, "-o", "json").stdout)
    written: dict[str, str] = found["metadata"].get("annotations") or {}
    return written


def test_a_stranger_is_told_with_423_that_it_can_not_scale(locked: Operated) -> None:
    done = stranger(locked, *SCALE)
    assert "(Locked)" in done.stderr
    assert "scale of deployments.apps web in namespace" in done.stderr
    assert "held by alice since" in done.stderr
    assert "(kernel update)" in done.stderr
    assert locked.get("deployment", "web")["spec"]["replicas"] == 0


def test_an_eviction_is_answered_429_which_a_drain_waits_for(locked: Operated) -> None:
    command, body = evict(locked, "db-0")
    done = stranger(locked, *command, stdin=body)
    assert "(TooManyRequests)" in done.stderr
    assert "held by alice" in done.stderr
    locked.get("pod", "db-0")


def test_commands_are_run_in_a_pod_by_its_holder_alone_if_the_asset_says_so(locked: Operated) -> None:
    command = ("exec", "db-0", "--", "true")
    assert "exec of pods db-0" in stranger(locked, *command).stderr
    assert "held by alice" in stranger(locked, *command).stderr
    assert "does not have a host assigned" in holder(locked, *command).stderr
    attached = stranger(locked, "attach", "db-0").stderr
    assert "held by alice" not in attached, "the asset does not close attach"


@pytest.mark.parametrize("way_in", ["exec", "attach", "portforward"])
def test_each_way_into_a_pod_that_the_asset_closes_is_open_to_the_holder_alone(
    operated: Operated, way_in: str
) -> None:
    make_workload(operated)
    operated.asset("vm-1", targets=[POD], guardedSubresources=[way_in])
    operated.held("first")
    pod = f"/api/v1/namespaces/{operated.namespace}/pods/db-0"
    for other in {"exec", "attach", "portforward"} - {way_in}:
        assert "held by alice" not in stranger(operated, "get", "--raw", f"{pod}/{other}").stderr
    connect = ("get", "--raw", f"{pod}/{way_in}")
    assert f"{way_in} of pods db-0" in stranger(operated, *connect).stderr
    assert "held by alice" not in holder(operated, *connect).stderr
    with out_of_order(operated):
        assert f"{way_in} of pods/db-0" in stranger(operated, *connect).stderr
        assert "held by alice" not in holder(operated, *connect).stderr


def test_the_holder_scales_and_evicts_and_is_recorded_for_it(locked: Operated) -> None:
    assert holder(locked, *SCALE).returncode == 0
    until(lambda: locked.get("asset", "vm-1")["status"].get("lastPatchedBy") == "alice", "recorded")
    command, body = evict(locked, "db-0")
    assert holder(locked, *command, stdin=body).returncode == 0


def test_what_is_no_target_is_scaled_and_evicted_as_ever(locked: Operated) -> None:
    locked.kubectl("create", "deployment", "free", "--image=one", "--replicas=0")
    assert stranger(locked, "scale", "deployment/free", "--replicas=1").returncode == 0
    pod = {"metadata": {"name": "db-01"}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    locked.create({"apiVersion": "v1", "kind": "Pod", **pod})
    command, body = evict(locked, "db-01")
    assert stranger(locked, *command, stdin=body).returncode == 0


def test_by_the_policy_alone_each_of_them_is_refused_and_the_holder_works(locked: Operated) -> None:
    with out_of_order(locked):
        command, body = evict(locked, "db-0")
        for refused in (
            stranger(locked, *SCALE),
            stranger(locked, *command, stdin=body),
            stranger(locked, "exec", "db-0", "--", "true"),
        ):
            assert "is locked through asset vm-1" in refused.stderr
            assert "held by alice (token 1)" in refused.stderr
        assert stranger(locked, "scale", "deployment/web", "--replicas=0").returncode == 0, "changes nothing"
        assert holder(locked, *SCALE).returncode == 0
        assert holder(locked, *command, stdin=body).returncode == 0


def test_break_glass_scales_through_the_lock_and_is_told_of(locked: Operated) -> None:
    done = locked.cluster.kubectl(
        "-n", locked.namespace, *SCALE, user="mallory", groups=BREAK_GLASS, check=False
    )
    assert done.returncode == 0
    until(lambda: "brokenGlass" in json.dumps(locked.get("asset", "vm-1")["status"]), "shown on the asset")


def test_the_pod_autoscaler_does_not_scale_what_is_locked(locked: Operated) -> None:
    autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    done = locked.cluster.kubectl("-n", locked.namespace, *SCALE, user=autoscaler, groups=ADMINS, check=False)
    assert "held by alice" in done.stderr


def test_when_the_lock_ends_the_guard_goes_and_everybody_scales_again(locked: Operated) -> None:
    assert annotations(locked)[names.namespace_fence_key("vm-1", locked.namespace)] == (
        "deployments.apps/web\npods/db-0 exec\n1 - alice"
    )
    locked.kubectl("delete", "alk", "first", user="alice")
    until(
        lambda: not any(key.endswith(names.NAMESPACE_FENCE_SUFFIX) for key in annotations(locked)),
        "the guard is off",
    )
    assert stranger(locked, *SCALE).returncode == 0


def test_a_custom_resource_is_scaled_by_its_holder_alone(operated: Operated) -> None:
    plural = f"fleet{operated.namespace.removeprefix('t-')}s"
    operated.create(scalable(plural))
    operated.kubectl("wait", "--for=condition=Established", f"crd/{plural}.example.com", "--timeout=20s")
    body = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "blue"}}
    until(
        lambda: operated.create({**body, "spec": {"size": 1}}, check=False).returncode == 0,
        "the kind is served",
    )
    operated.asset("vm-1", targets=[{"apiVersion": "example.com/v1", "kind": "Fleet", "name": "blue"}])
    operated.held("first")
    scale = ("scale", f"{plural}.example.com/blue", "--replicas=3")
    assert "held by alice" in stranger(operated, *scale).stderr
    assert holder(operated, *scale).returncode == 0
    operated.kubectl("delete", "crd", f"{plural}.example.com", "--wait=false", check=False)


def scalable(plural: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Fleet"},
            "versions": [version],
        },
    }


def delete_namespace(operated: Operated, user: str = "mallory") -> subprocess.CompletedProcess[str]:
    command = ("delete", "namespace", operated.namespace, "--wait=false")
    return operated.cluster.kubectl(*command, user=user, groups=ADMINS, check=False)


def phase(operated: Operated) -> str:
    found = operated.kubectl("get", "namespace", operated.namespace, "-o", "jsonpath={.status.phase}")
    return str(found.stdout)


def test_a_namespace_is_not_deleted_over_locks_and_all_of_them_are_named(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.asset("vm-2")
    operated.held("first", reason="kernel update")
    operated.held("second", "bob", asset="vm-2")
    until(lambda: guarded(operated), "the namespace is labelled")
    done = delete_namespace(operated)
    assert "(Locked)" in done.stderr
    assert f"asset vm-1 in namespace {operated.namespace} is held by alice since" in done.stderr
    assert f"asset vm-2 in namespace {operated.namespace} is held by bob since" in done.stderr
    assert phase(operated) == "Active"


def guarded(operated: Operated) -> bool:
    found = operated.kubectl("get", "namespace", operated.namespace, "-o", "json").stdout
    return bool(json.loads(found)["metadata"]["labels"].get(names.GUARDED_LABEL) == "true")


def test_a_namespace_with_a_lock_in_it_is_not_deleted_while_all_of_ours_is_down(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    with out_of_order(operated):
        done = delete_namespace(operated)
        assert "(Forbidden)" in done.stderr
        assert "asset vm-1 in namespace" in done.stderr
        assert "is held by alice until" in done.stderr
    assert phase(operated) == "Active"


def test_a_namespace_is_deleted_when_the_lock_has_ended(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    assert delete_namespace(operated).returncode == 1
    operated.kubectl("delete", "alk", "first", user="alice")
    until(lambda: delete_namespace(operated).returncode == 0, "deleted")
    operated.cluster.kubectl("wait", "--for=delete", f"namespace/{operated.namespace}", "--timeout=60s")


def test_a_holder_deletes_the_namespace_of_its_own_lock_and_it_goes(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    assert delete_namespace(operated, "alice").returncode == 0
    operated.cluster.kubectl("wait", "--for=delete", f"namespace/{operated.namespace}", "--timeout=60s")


@pytest.fixture
def elsewhere(operated: Operated) -> Iterator[Operated]:
    """Another namespace, with a Deployment in it that an asset of the first one has locked."""
    other = Operated(operated.cluster, operated.stack, f"{operated.namespace}-other")
    operated.cluster.kubectl("create", "namespace", other.namespace)
    make_workload(other)
    operated.asset("vm-1", targets=[{**WEB, "namespace": other.namespace}])
    operated.held("first")
    yield other
    command = ("delete", "namespace", other.namespace, "--wait=false", "--ignore-not-found")
    operated.cluster.kubectl(*command, user="root", groups=BREAK_GLASS)


def test_what_an_asset_of_another_namespace_locks_is_fenced_just_so(elsewhere: Operated) -> None:
    assert "held by alice" in stranger(elsewhere, *SCALE).stderr
    assert "is held by alice" in delete_namespace(elsewhere).stderr
    with out_of_order(elsewhere):
        assert "held by alice (token 1)" in stranger(elsewhere, *SCALE).stderr
        assert "has things in it that are locked through asset vm-1" in delete_namespace(elsewhere).stderr
    assert phase(elsewhere) == "Active"


def test_what_the_operator_writes_on_a_namespace_is_put_back_and_by_the_policy_refused(
    locked: Operated,
) -> None:
    name = locked.namespace
    key = names.namespace_fence_key("vm-1", name)
    before = annotations(locked)[key]
    unlabel = ("label", "namespace", name, f"{names.GUARDED_LABEL}-")
    unguard = ("annotate", "namespace", name, f"{key}-")
    forge = ("annotate", "namespace", name, f"{key}=pods/db-0\n9 - mallory", "--overwrite")
    for command in (unlabel, unguard, forge):
        assert locked.cluster.kubectl(*command, user="mallory", groups=ADMINS, check=False).returncode == 0
        assert guarded(locked)
        assert annotations(locked)[key] == before
    with out_of_order(locked):
        for command in (unlabel, unguard, forge):
            done = locked.cluster.kubectl(*command, user="mallory", groups=ADMINS, check=False)
            assert "written by the operator alone" in done.stderr
        team = ("label", "namespace", name, "team=mine")
        assert locked.cluster.kubectl(*team, user="mallory", groups=ADMINS, check=False).returncode == 0


def test_a_namespace_without_assets_is_unlabelled_again(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    until(lambda: guarded(operated), "labelled")
    operated.kubectl("delete", "asset", "vm-1")
    until(lambda: not guarded(operated), "unlabelled", seconds=45)


def test_an_object_is_not_made_anew_under_a_locked_name_but_by_the_holder(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.kubectl("delete", "configmap", "app", user="alice")
    app = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}})
    make = ("create", "--filename=-")
    until(
        lambda: "held by alice" in stranger(operated, *make, "--dry-run=server", stdin=app).stderr,
        "asked about",
    )
    done = stranger(operated, *make, stdin=app)
    assert "(Locked)" in done.stderr
    assert f"ConfigMap app in namespace {operated.namespace} is locked through asset vm-1" in done.stderr
    assert stranger(operated, "create", "configmap", "another").returncode == 0
    operated.kubectl(*make, user="alice", stdin=app)


def test_an_object_that_a_locked_selector_would_select_is_not_made_by_strangers(operated: Operated) -> None:
    selector = {"matchLabels": {"app": "shop"}}
    operated.asset("vm-1", targets=[{"apiVersion": "v1", "kind": "Secret", "selector": selector}])
    operated.held("first")

    def secret(app: str) -> str:
        metadata = {"generateName": "new-", "labels": {"app": app}}
        return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})

    dry = ("create", "--dry-run=server", "--filename=-")
    until(lambda: "held by alice" in stranger(operated, *dry, stdin=secret("shop")).stderr, "asked about")
    assert stranger(operated, "create", "--filename=-", stdin=secret("other")).returncode == 0
    assert holder(operated, "create", "--filename=-", stdin=secret("shop")).returncode == 0


def test_what_is_made_under_a_locked_name_while_the_webhook_is_down_is_stamped_when_it_is_seen(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.kubectl("delete", "configmap", "app", user="alice")
    with out_of_order(operated, Part.ADMISSION):
        make = ("create", "configmap", "app", "--from-literal=value=9")
        assert stranger(operated, *make).returncode == 0
        until(lambda: operated.write("app", "bob").returncode == 1, "stamped")


def test_the_controller_of_a_locked_workload_makes_the_pods_that_are_targets_themselves(
    operated: Operated,
) -> None:
    selector = {"matchLabels": {"app": "web"}}
    make_workload(operated)
    pods = {"apiVersion": "v1", "kind": "Pod", "selector": selector}
    operated.asset("vm-1", targets=[WEB, pods])
    operated.held("first")
    assert holder(operated, "scale", "deployment/web", "--replicas=2").returncode == 0
    counted = ("get", "pods", "-l", "app=web", "-o", "name")
    until(lambda: len(operated.kubectl(*counted).stdout.split()) == 2, "two pods")
    [first, _] = operated.kubectl(*counted).stdout.split()
    command, body = evict(operated, first.removeprefix("pod/"))
    until(lambda: "held by alice" in stranger(operated, *command, "--v=0", stdin=body).stderr, "guarded")


def test_a_drain_waits_for_the_lock_and_ends_when_it_does(operated: Operated) -> None:
    node = f"node-{operated.namespace}"
    operated.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    spec = {"containers": [{"name": "c", "image": "one"}], "nodeName": node}
    operated.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0"}, "spec": spec})
    operated.asset("vm-1", targets=[POD])
    operated.held("first")
    drain = ("drain", node, "--force", "--grace-period=0")
    waited = operated.cluster.kubectl(*drain, "--timeout=8s", user="mallory", groups=ADMINS, check=False)
    assert "will retry after" in waited.stderr
    assert "held by alice" in waited.stderr
    operated.kubectl("delete", "alk", "first", user="alice")
    until(
        lambda: not any(key.endswith(names.NAMESPACE_FENCE_SUFFIX) for key in annotations(operated)),
        "the guard is off",
    )
    done = operated.cluster.kubectl(*drain, "--timeout=30s", user="mallory", groups=ADMINS, check=False)
    assert done.returncode == 0, done.stderr
    operated.cluster.kubectl("delete", "node", node)


def test_a_scalable_thing_in_kube_system_is_not_reported_as_fenced(operated: Operated) -> None:
    target = {**WEB, "namespace": "kube-system", "name": "coredns"}
    operated.create(document("Asset", "vm-1", {"type": "VM", "targets": [target]}))
    operated.lock("first")
    condition = operated.settled("first")
    assert condition["reason"] == "NotFenceable"
    assert "is not fenced for what is in kube-system" in condition["message"]
    labels = json.loads(operated.kubectl("get", "namespace", "kube-system", "-o", "json").stdout)
    assert names.GUARDED_LABEL not in labels["metadata"]["labels"]
