"""mallory has the controllers of Kubernetes write to what alice holds: adopt it, scale it, bind it."""

from __future__ import annotations

from typing import Any

from tests.adversary.conftest import Shop
from tests.cluster.conftest import until

LABELS = {"app": "one"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "none"}]}}


def workload(kind: str, name: str, replicas: int) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def refusals(shop: Shop) -> float:
    """How many writes the fence has refused so far, whoever sent them."""
    metrics = shop.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    ours = [line for line in metrics if "webhook_rejection_count" in line and "fence.assetlock.dev" in line]
    return sum(float(line.split()[-1]) for line in ours)


def test_a_deployment_adopts_no_locked_replica_set(shop: Shop) -> None:
    shop.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    shop.create(workload("ReplicaSet", "rs1", 2))
    shop.wait("rs/rs1", "jsonpath={.status.replicas}=2")
    shop.stands_for("rs", ("apps/v1", "ReplicaSet", "rs1"))
    shop.held("work", "alice", asset="rs", ttl="1h")
    before = refusals(shop)
    shop.does("mallory", "create", "-f", "-", stdin=workload("Deployment", "thief", 0))
    until(lambda: refusals(shop) > before, "the controller has tried")
    held = shop.get("rs", "rs1")
    assert "ownerReferences" not in held["metadata"]
    assert held["spec"]["replicas"] == 2


def test_a_replica_set_adopts_no_locked_pod(shop: Shop) -> None:
    shop.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    shop.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "solo", "labels": LABELS},
            "spec": TEMPLATE["spec"],
        }
    )
    shop.stands_for("solo", ("v1", "Pod", "solo"))
    shop.held("work", "alice", asset="solo", ttl="1h")
    before = refusals(shop)
    shop.does("mallory", "create", "-f", "-", stdin=workload("ReplicaSet", "thief", 1))
    until(lambda: refusals(shop) > before, "the controller has tried")
    assert "ownerReferences" not in shop.metadata("pod/solo")


def test_a_claim_binds_no_locked_volume(shop: Shop) -> None:
    name = f"pv-{shop.namespace}"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "none",
        "hostPath": {"path": "/nowhere"},
    }
    shop.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume})
    shop.wait(f"pv/{name}", "jsonpath={.status.phase}=Available")
    shop.stands_for("pv", ("v1", "PersistentVolume", name))
    shop.held("work", "alice", asset="pv", ttl="1h")
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "grab"},
        "spec": {**claim, "volumeName": name, "storageClassName": "none"},
    }
    before = refusals(shop)
    shop.does("mallory", "create", "-f", "-", stdin=body)
    until(lambda: refusals(shop) > before, "the controller has tried")
    assert "claimRef" not in shop.get("pv", name)["spec"]
    shop.does("alice", "delete", "alk", "work")
    shop.wait(f"pv/{name}", "jsonpath={.status.phase}=Bound", timeout=60)
    shop.kubectl("delete", "pv", name, "--wait=false")
