"""Locks whose holders are pods, on a real API server with the whole operator."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.cluster import workers
from tests.cluster.conftest import Operated, lease, until
from tests.cluster.workers import READY, Worker


@pytest.fixture
def shop(operated: Operated) -> Operated:
    """A namespace with an asset and pods that may lock it."""
    workers.allow_workers(operated)
    operated.asset("vm-1", "app")
    return operated


@pytest.fixture
def node(operated: Operated) -> Iterator[str]:
    """A node that is well."""
    name = f"node-{uuid.uuid4().hex[:8]}"
    operated.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    workers.set_status(operated, f"node/{name}", {"conditions": [READY]})
    yield name
    operated.kubectl("delete", "node", name)


def vanishes(worker: Worker) -> None:
    worker.vanish()


def succeeds(worker: Worker) -> None:
    worker.becomes("Succeeded")


def fails(worker: Worker) -> None:
    worker.becomes("Failed", reason="OOMKilled")


@pytest.mark.parametrize(
    ("end", "evidence"),
    [
        (vanishes, "pod migrate is gone"),
        (succeeds, "pod migrate has succeeded"),
        (fails, "pod migrate has failed (OOMKilled)"),
    ],
)
def test_a_lock_ends_with_its_pod_and_the_next_one_gets_it_at_once(
    shop: Operated, end: Callable[[Worker], None], evidence: str
) -> None:
    worker = workers.start(shop, "migrate")
    worker.lock("first", bindTo="Pod", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    shop.lock("second", "bob", wait="10m")
    end(worker)
    shop.wait("alk/second", "condition=Acquired", timeout=5)
    assert shop.get("alk", "first")["status"]["state"] == "Released"
    finished = shop.condition("first", "Finished")
    reason = "HolderFailed" if "failed" in evidence else "HolderGone"
    assert (finished["reason"], finished["message"]) == (reason, evidence)
    assert shop.write("app", "bob").returncode == 0


def test_a_pod_that_fails_leaves_an_asset_that_nobody_gets_before_a_person_has_looked(shop: Operated) -> None:
    worker = workers.start(shop, "migrate")
    worker.lock("first", bindTo="Pod", ttl="1h", onExpiry="Quarantine")
    shop.wait("alk/first", "condition=Acquired")
    fails(worker)
    shop.wait("alk/first", "jsonpath={.status.state}=Quarantined")
    finished = shop.condition("first", "Finished")
    assert finished["reason"] == "HolderFailed"
    assert finished["message"].startswith("pod migrate has failed (OOMKilled); nobody gets it until")
    until(lambda: "quarantine" in shop.write("app", "bob").stderr, "nobody may write")


def test_a_pod_that_waits_for_what_it_has_itself_is_told_so_at_once(shop: Operated) -> None:
    worker = workers.start(shop, "migrate")
    worker.lock("first", bindTo="Pod", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    worker.lock("second", bindTo="Pod", wait="1h")
    settled = shop.settled("second")
    assert settled["reason"] == "Deadlock"
    assert "(second) waits for asset vm-1, which" in settled["message"]
    assert shop.get("alk", "first")["status"]["state"] == "Held"


def test_a_lock_of_a_user_outlives_the_pod_that_asked_for_it(shop: Operated) -> None:
    worker = workers.start(shop, "acquire")
    worker.lock("first", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    worker.becomes("Succeeded")
    other = workers.start(shop, "work")
    other.lock("bound", bindTo="Pod", wait="1h")
    other.vanish()
    assert shop.settled("bound")["reason"] == "HolderGone", "by now the operator has seen what pods do"
    assert shop.get("alk", "first")["status"]["state"] == "Held"
    later = workers.start(shop, "release")
    assert later.write("app").returncode == 0
    later.kubectl("delete", "alk", "first")


def test_a_pod_of_the_same_name_is_another_holder(shop: Operated) -> None:
    first = workers.start(shop, "db-0")
    first.lock("first", bindTo="Pod", ttl="1h", releaseWithHolder=False)
    shop.wait("alk/first", "condition=Acquired")
    first.vanish()
    second = workers.start(shop, "db-0")
    assert second.uid != first.uid
    refused = second.write("app")
    assert refused.returncode == 1
    assert "held by" in refused.stderr
    assert second.kubectl("delete", "alk", "first", check=False).returncode == 1
    assert shop.get("alk", "first")["status"]["state"] == "Held"


def test_a_replaced_pod_is_gone_although_its_name_is_there(shop: Operated) -> None:
    first = workers.start(shop, "db-0")
    first.lock("first", bindTo="Pod", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    first.vanish()
    second = workers.start(shop, "db-0")
    second.lock("second", bindTo="Pod", wait="10m")
    shop.wait("alk/second", "condition=Acquired", timeout=5)
    assert shop.condition("first", "Finished")["reason"] == "HolderGone"
    assert second.write("app").returncode == 0


def test_a_lease_that_a_pod_made_goes_with_the_pod(shop: Operated) -> None:
    worker = workers.start(shop, "migrate")
    worker.create(lease("vm-1", "migrate", leaseDurationSeconds=3600))
    token = r"jsonpath={.metadata.annotations.assetlock\.dev/token}"
    shop.wait("lease/asset.vm-1", token)
    annotations = shop.get("lease", "asset.vm-1")["metadata"]["annotations"]
    assert annotations["assetlock.dev/pod"] == "migrate"
    assert worker.uid in annotations["assetlock.dev/owner"]
    refused = shop.write("app", "bob")
    assert "in pod migrate" in refused.stderr
    worker.becomes("Failed")
    shop.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=5s")
    until(lambda: shop.write("app", "bob").returncode == 0, "bob may write")
    events = json.loads(shop.kubectl("get", "events.v1.events.k8s.io", "-o", "json").stdout)["items"]
    assert any(e["reason"] == "HolderFailed" and "pod migrate has failed" in e["note"] for e in events)


def test_a_lease_that_waives_its_pod_stays_without_it(shop: Operated) -> None:
    worker, other = workers.start(shop, "acquire"), workers.start(shop, "work")
    body = lease("vm-1", "pipeline", leaseDurationSeconds=3600)
    body["metadata"]["annotations"] = {"assetlock.dev/bind-to": "User"}
    worker.create(body)
    shop.wait("ast/vm-1", "jsonpath={.status.lockState}=Locked")
    worker.vanish()
    assert other.write("app").returncode == 0
    other.kubectl("delete", "lease", "asset.vm-1")


def test_a_waiter_whose_pod_is_gone_is_never_granted(shop: Operated) -> None:
    shop.held("first")
    worker = workers.start(shop, "migrate")
    worker.lock("second", wait="10m", priority=5)
    shop.lock("third", "bob", wait="10m")
    shop.wait("alk/second", "jsonpath={.status.queuePosition}=1")
    worker.vanish()
    settled = shop.settled("second", timeout=5)
    assert settled["reason"] == "HolderGone"
    assert "pod migrate is gone" in settled["message"]
    shop.kubectl("delete", "alk", "first", user="alice")
    shop.wait("alk/third", "condition=Acquired")
    assert shop.get("alk", "second")["status"]["state"] == "Failed"


def test_a_lock_on_an_unreachable_node_waits_for_its_ttl_and_says_so(shop: Operated, node: str) -> None:
    worker = workers.start(shop, "migrate", node=node)
    worker.lock("first", bindTo="Pod", ttl="15s", extendOnWrite=False)
    shop.wait("alk/first", "condition=Acquired")
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    workers.set_status(shop, f"node/{node}", {"conditions": [unknown]})
    worker.becomes("Running", {"type": "Ready", "status": "False"})
    shop.kubectl("delete", "pod", "migrate", "--wait=false")
    shop.wait("alk/first", "jsonpath={.status.conditions[?(@.type=='HolderAlive')].reason}=NodeUnreachable")
    alive = shop.condition("first", "HolderAlive")
    assert alive["status"] == "Unknown"
    expires = shop.get("alk", "first")["status"]["expireTime"]
    assert f"node {node} of pod migrate is unreachable" in alive["message"]
    assert expires in alive["message"]
    shop.lock("impatient", "bob")
    assert "is unreachable" in shop.settled("impatient")["message"]
    assert shop.write("app", "bob").returncode == 1
    shop.lock("second", "bob", wait="10m")
    shop.wait("alk/second", "condition=Acquired", timeout=30)
    assert shop.get("alk", "first")["status"]["state"] == "Expired"


def test_a_pod_that_is_being_deleted_holds_on_until_it_has_gone(shop: Operated, node: str) -> None:
    worker = workers.start(shop, "migrate", node=node)
    worker.lock("first", bindTo="Pod", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    shop.kubectl("delete", "pod", "migrate", "--wait=false")
    shop.wait("alk/first", "jsonpath={.status.conditions[?(@.type=='HolderAlive')].reason}=PodTerminating")
    assert shop.get("alk", "first")["status"]["state"] == "Held"
    assert worker.write("app").returncode == 0, "it may end its work in peace"
    worker.vanish()
    shop.wait("alk/first", "jsonpath={.status.state}=Released", timeout=5)


def test_a_lock_ends_with_the_job_of_its_pod(shop: Operated) -> None:
    shop.create(job("migrate"))
    until(lambda: bool(pods_of(shop, "migrate")), "the Job has a pod")
    [name] = pods_of(shop, "migrate")
    worker = workers.in_pod(shop, name)
    worker.becomes("Running", READY)
    worker.lock("first", bindTo="Pod", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    shop.kubectl("delete", "job", "migrate")
    shop.wait("alk/first", "jsonpath={.status.state}=Released", timeout=10)
    assert shop.condition("first", "Finished")["reason"] == "HolderGone"


def test_a_lock_ends_with_a_finished_job_although_its_pod_lingers(shop: Operated) -> None:
    shop.create(job("migrate", managedBy="example.com/nobody"))
    uid = shop.get("job", "migrate")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "migrate", "uid": uid, "controller": True}
    worker = workers.start(shop, "migrate-x", owner=owner)
    worker.lock("first", bindTo="Pod", ttl="1h")
    shop.wait("alk/first", "condition=Acquired")
    conditions = [{"type": kind, "status": "True"} for kind in ("FailureTarget", "Failed")]
    workers.set_status(shop, "job/migrate", {"startTime": "2026-01-01T00:00:00Z", "conditions": conditions})
    shop.wait("alk/first", "jsonpath={.status.state}=Released", timeout=5)
    assert (
        "Job migrate of pod migrate-x is finished (Failed)" in shop.condition("first", "Finished")["message"]
    )


def test_ending_with_a_pod_needs_a_pod(shop: Operated) -> None:
    refused = shop.lock("first", "alice", releaseWithHolder=True, check=False)
    assert "spec.releaseWithHolder" in refused.stderr
    assert "needs a holder with a podUID" in refused.stderr


def job(name: str, **spec: Any) -> dict[str, Any]:
    pod = {
        "restartPolicy": "Never",
        "serviceAccountName": workers.ACCOUNT,
        "containers": [{"name": "c", "image": "none"}],
    }
    template = {"spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def pods_of(operated: Operated, job: str) -> list[str]:
    found = operated.kubectl("get", "pods", f"--selector=job-name={job}", "-o", "name").stdout.split()
    return [name.removeprefix("pod/") for name in found]
