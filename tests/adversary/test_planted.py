"""mallory plants our label, stamps and namespace annotations, to shut everybody out of what is not even locked."""

from __future__ import annotations

import json
from typing import Any

from assetlock.core import names
from assetlock.model.limits import MOST_ANNOTATIONS
from tests.adversary.conftest import Shop
from tests.cluster.conftest import BREAK_GLASS, document

MOST_SECONDS = 7.0
"""Of CPU, for a write of an object with 40,000 annotations; the policy alone took more than thirty."""


def planted(name: str, count: int) -> dict[str, Any]:
    """A ConfigMap with our label and as many tiny annotations."""
    annotations = {f"a{number}": "" for number in range(count)}
    metadata = {"name": name, "labels": {names.FENCED_LABEL: "true"}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def seconds_of_cpu(shop: Shop) -> float:
    """What the API server has used so far."""
    metrics = shop.kubectl("get", "--raw", "/metrics").stdout
    lines = (line for line in metrics.splitlines() if line.startswith("process_cpu_seconds_total"))
    return float(next(lines).split()[1])


def test_tens_of_thousands_of_annotations_cost_no_more_with_our_label(shop: Shop) -> None:
    """Without a way out of the policy each write took half a minute of CPU, and timed out."""
    shop.does("mallory", "create", "-f", "-", stdin=planted("bomb", 40_000))
    for user in ("mallory", "root"):
        before = seconds_of_cpu(shop)
        shop.does(user, "label", "configmap", "bomb", "--overwrite", f"by={user}")
        assert seconds_of_cpu(shop) - before < MOST_SECONDS
    shop.does("root", "delete", "configmap", "bomb")


def test_what_has_so_many_annotations_is_not_reported_as_fenced(shop: Shop) -> None:
    shop.create(planted("many", MOST_ANNOTATIONS + 1))
    shop.stands_for("many", ("v1", "ConfigMap", "many"))
    shop.lock("work", "alice", asset="many")
    settled = shop.settled("work")
    assert settled["reason"] == "NotFenceable"
    assert "501 annotations" in settled["message"]


def test_nobody_makes_so_many_of_what_is_locked_that_the_fence_falls(locked: Shop) -> None:
    many = {"metadata": {"annotations": {f"a{number}": "" for number in range(MOST_ANNOTATIONS)}}}
    for user in ("alice", "mallory"):
        patch = ("patch", "configmap", "app", "--type=merge", f"--patch={json.dumps(many)}")
        locked.refused(user, *patch)
    assert locked.patched("alice", "configmap/app", {"metadata": {"annotations": {"one": "more"}}})


def test_nobody_plants_what_closes_a_namespace(shop: Shop) -> None:
    """Which would keep everybody from scaling there, and from deleting it."""
    for key in ("a.guard.assetlock.dev/targets", names.namespace_fence_key("vm", "elsewhere")):
        annotations = {key: "deployments.apps/web\n9 - nobody"}
        for labels in ({}, {names.GUARDED_LABEL: "true"}):
            metadata = {"name": f"{shop.namespace}-2", "labels": labels, "annotations": annotations}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            assert "by the operator alone" in shop.refused("root", "create", "-f", "-", stdin=body)
        patch = json.dumps({"metadata": {"annotations": annotations}})
        done = shop.tries("root", "patch", "namespace", shop.namespace, "--type=merge", f"--patch={patch}")
        assert key not in shop.metadata(f"namespace/{shop.namespace}").get("annotations", {}), done.stdout


def test_what_was_planted_before_is_taken_off_and_means_nothing(shop: Shop) -> None:
    name, key = f"{shop.namespace}-2", "a.guard.assetlock.dev/targets"
    shop.kubectl("create", "namespace", name)
    patch = json.dumps({"metadata": {"annotations": {key: "deployments.apps/web\n9 - nobody"}}})
    command = ("patch", "namespace", name, "--type=merge", f"--patch={patch}")
    shop.cluster.kubectl(*command, user="root", groups=BREAK_GLASS)
    shop.cluster.kubectl("create", "deployment", "web", "--image=none", "--replicas=0", "-n", name)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": name}
    shop.create(document("Asset", "web", {"targets": [target]}))
    label = f"jsonpath={{.metadata.labels.{names.GUARDED_LABEL.replace('.', chr(92) + '.')}}}=true"
    shop.wait(f"namespace/{name}", label)
    assert key not in shop.metadata(f"namespace/{name}").get("annotations", {})
    shop.cluster.kubectl("scale", "deployment", "web", "--replicas=1", "-n", name, user="root")
    shop.kubectl("delete", "asset", "web")
    shop.does("root", "delete", "namespace", name, "--wait=false")
