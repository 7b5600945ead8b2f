"""The operator's rights: it lacks none, and none is spare, as the API server's own audit log shows.

Assets stand for ConfigMaps and Deployments only here: the wide right on targets would hide what is missing elsewhere.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.cluster import workers
from tests.cluster.conftest import BREAK_GLASS, Operated, document, grant_rights, lease, until

from assetlock.admission.upkeep.tls import SECRET
from assetlock.cli import stack as operator_stack
from assetlock.core import names
from assetlock.dev import ControlPlane
from assetlock.install import manifests
from assetlock.model.times import format_time

ROLES = {names.CONTROLLER_USER: "assetlock-controller", names.ADMISSION_USER: "assetlock-admission"}
TARGETS = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]},
]
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}
AFTER_A_CONFLICT = {
    "assetlock-admission: get leases",
    "assetlock-controller: get assetlocks",
    "assetlock-controller: get maintenancewindows",
    "assetlock-controller: get namespaces",
}
"""Read again when somebody else was faster to write: seldom, and not at will."""

SELDOM = {
    "assetlock-admission: patch events",
    "assetlock-admission: update secrets assetlock-admission-path",
    "assetlock-controller: get nodes",
    "assetlock-controller: get validatingadmissionpolicies assetlock-targets",
    "assetlock-controller: patch events",
    "assetlock-controller: patch validatingadmissionpolicies assetlock-targets",
}
"""An Event that recurs within six minutes, a path after 60 days, a pod that is still there when its node is gone, a
stamp that can't be taken off."""


class Right(NamedTuple):
    """One verb on one resource, perhaps of one name."""

    user: str
    group: str
    resource: str
    name: str
    verb: str


@pytest.fixture(scope="module")
def asked() -> Iterator[list[dict[str, Any]]]:
    """What both processes asked the API server for while everything happened to locks that can."""
    with ControlPlane(audit=True) as cluster:
        running = operator_stack.start(cluster)
        grant_rights(cluster)
        patch = json.dumps({"rules": TARGETS})
        cluster.kubectl("patch", "clusterrole", "assetlock-targets-any", "--type=merge", f"--patch={patch}")
        rules = ("get", "clusterrole", "assetlock-targets", "--output=json")
        until(lambda: json.loads(cluster.kubectl(*rules).stdout)["rules"] == TARGETS, "rights are limited")
        cluster.kubectl("create", "namespace", "shop")
        live(Operated(cluster, running, "shop"))
        running.restart()
        events = [json.loads(line) for line in (cluster.folder / "audit.log").read_text().splitlines()]
        yield [one for one in events if one["user"]["username"] in ROLES]


def test_nothing_that_the_operator_asks_for_is_forbidden(asked: list[dict[str, Any]]) -> None:
    forbidden = {
        (one["user"]["username"], one["verb"], one["requestURI"])
        for one in asked
        if one.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    }
    assert not forbidden


def test_no_right_that_the_operator_has_is_spare(asked: list[dict[str, Any]]) -> None:
    used = {right for one in asked if "objectRef" in one for right in used_by(one)}
    spare = {f"{ROLES[one.user]}: {one.verb} {one.resource} {one.name}".strip() for one in granted() - used}
    assert sorted(spare - AFTER_A_CONFLICT - SELDOM) == []


def live(operated: Operated) -> None:
    """A lock by an AssetLock, by a Lease, by a pod, by a window; written by its holder, and through it."""
    operated.create(DEPLOYMENT)
    operated.kubectl("create", "configmap", "app", "--from-literal=value=0")
    targets = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    ]
    operated.create(document("Asset", "vm-1", {"type": "VM", "targets": targets}))
    operated.held("first", ttlSecondsAfterFinished=1)
    for number in range(3):
        operated.write("app", "alice", value=str(number), check=True)
    scale = ("scale", "deployment", "web", "--replicas=2", "--namespace=shop")
    refused = operated.cluster.kubectl(*scale, user="bob", groups=("system:masters",), check=False)
    assert "held by alice" in refused.stderr
    break_glass(operated)
    until(lambda: "lastPatchedBy" in operated.get("asset", "vm-1")["status"], "the write is recorded")
    operated.kubectl("delete", "assetlock", "first", user="alice")
    by_lease(operated)
    by_pod(operated)
    by_window(operated)
    spoil_the_certificate(operated.cluster)


def by_lease(operated: Operated) -> None:
    operated.asset("vm-2", "by-lease")
    operated.create(lease("vm-2"), user="alice")
    announced = ("get", "lease", "asset.vm-2", "--output=jsonpath={.metadata.annotations}")
    until(lambda: names.TOKEN_ANNOTATION in operated.kubectl(*announced).stdout, "the Lease is announced")
    operated.kubectl("delete", "lease", "asset.vm-2", user="alice")


def by_pod(operated: Operated) -> None:
    """A Job's pod, whose node is not heard of any more, and goes."""
    workers.allow_workers(operated)
    operated.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "machine"}})
    container = {"name": "c", "image": "none"}
    pod = {"restartPolicy": "Never", "nodeName": "machine", "serviceAccountName": workers.ACCOUNT}
    job = {"template": {"spec": {**pod, "containers": [container]}}}
    operated.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": job})
    names_of_pods = ("get", "pods", "--selector=job-name=work", "--output=jsonpath={.items[*].metadata.name}")
    until(lambda: bool(operated.kubectl(*names_of_pods).stdout), "the Job has a pod")
    worker = workers.in_pod(operated, operated.kubectl(*names_of_pods).stdout)
    worker.becomes("Running", workers.READY)
    operated.asset("vm-3", "by-pod")
    worker.lock("third", "vm-3", bindTo="Pod", ttl="1h")
    operated.wait("alk/third", "condition=Acquired")
    worker.becomes("Running", {"type": "Ready", "status": "Unknown"})
    operated.cluster.kubectl("delete", "node", "machine")
    operated.wait("alk/third", "condition=Finished", timeout=60)


def by_window(operated: Operated) -> None:
    operated.asset("vm-4", "by-window")
    now = datetime.datetime.now(datetime.UTC)
    start, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1)
    window = {"kind": "Block", "start": format_time(start), "end": format_time(end), "assetNames": ["vm-4"]}
    operated.create(document("MaintenanceWindow", "night", window))
    until(lambda: operated.get("asset", "vm-4")["status"].get("lockState") == "Maintenance", "it is closed")
    operated.kubectl("delete", "mw", "night")
    until(lambda: operated.get("asset", "vm-4")["status"].get("lockState") == "Unlocked", "it is open")


def break_glass(operated: Operated) -> None:
    """Twice the same, so that its Event becomes a series."""
    for value in ("8", "9"):
        patch = json.dumps({"data": {"value": value}})
        command = ("patch", "configmap", "app", "--type=merge", f"--patch={patch}", "--namespace=shop")
        operated.cluster.kubectl(*command, user="root", groups=BREAK_GLASS)


def used_by(event: dict[str, Any]) -> Iterator[Right]:
    """The rights by any of which this was allowed: with a name and without."""
    what = event["objectRef"]
    resource = what["resource"] + (f"/{what['subresource']}" if "subresource" in what else "")
    for name in ("", what.get("name", "")):
        yield Right(event["user"]["username"], what.get("apiGroup", ""), resource, name, event["verb"])


def granted() -> set[Right]:
    """Every single right in the roles of the two processes; the one on targets is a setting."""
    found = set()
    for user, role in ROLES.items():
        for manifest in manifests("manifests"):
            if manifest["kind"] in ("ClusterRole", "Role") and manifest["metadata"]["name"] == role:
                for rule in manifest["rules"]:
                    found |= set(singles(user, rule))
    return found


def singles(user: str, rule: dict[str, Any]) -> Iterator[Right]:
    parts = (rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""]), rule["verbs"])
    for group, resource, name, verb in itertools.product(*parts):
        yield Right(user, group, resource, name, verb)


def spoil_the_certificate(cluster: ControlPlane) -> None:
    """One that can't be read is made again."""
    secret = ("secret", SECRET, f"--namespace={names.OPERATOR_NAMESPACE}")
    patch = json.dumps({"data": {"tls.crt": "eA=="}})
    cluster.kubectl("patch", *secret, "--type=merge", f"--patch={patch}")
    certificate = ("get", *secret, "--output=jsonpath={.data.tls\\.crt}")
    until(lambda: cluster.kubectl(*certificate).stdout != "eA==", "it is made again", seconds=60)
