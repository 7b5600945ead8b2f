"""What can be said of a pod for certain, from the objects that tell of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetlock.core.pods import Fate, PodRef, Sight, fate_of, node_in_question, pod_of_lease, pod_of_lock
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.workload import Job, Node, Pod

REF = PodRef("shop", "migrate-7", "pod-uid")
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "migrate", "uid": "job-uid", "controller": True}
READY = [{"type": "Ready", "status": "True"}]


def pod(uid: str = REF.uid, *, of_job: bool = False, deleted: bool = False, **status: Any) -> Pod:
    metadata: dict[str, Any] = {"name": REF.name, "uid": uid, "ownerReferences": [JOB] if of_job else []}
    if deleted:
        metadata["deletionTimestamp"] = "2026-03-28T12:00:00Z"
    status = {"phase": "Running", "conditions": READY, **status}
    return Pod.model_validate({"metadata": metadata, "spec": {"nodeName": "worker-1"}, "status": status})


def job(*conditions: str, uid: str = "job-uid") -> Job:
    told = [{"type": kind, "status": "True"} for kind in conditions]
    return Job.model_validate({"metadata": {"name": "migrate", "uid": uid}, "status": {"conditions": told}})


def node(ready: str = "True", *taints: str) -> Node:
    return Node.model_validate(
        {
            "metadata": {"name": "worker-1"},
            "spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }
    )


UNREACHABLE = (node("Unknown"), node("True", "node.kubernetes.io/unreachable"))


@pytest.mark.parametrize(
    ("sight", "evidence"),
    [
        (Sight(None), "pod migrate-7 is gone"),
        (Sight(pod("another")), "pod migrate-7 is gone; the one that has its name now is another"),
        (Sight(pod(phase="Succeeded")), "pod migrate-7 has succeeded"),
        (Sight(pod(phase="Failed", reason="Evicted")), "pod migrate-7 has failed (Evicted)"),
        (Sight(pod(of_job=True), job_seen=True), "Job migrate of pod migrate-7 is gone"),
        (Sight(pod(of_job=True), job(uid="other"), job_seen=True), "Job migrate of pod migrate-7 is gone"),
        (Sight(pod(of_job=True), job("Failed"), job_seen=True), "Job migrate of pod migrate-7 is finished"),
    ],
)
def test_what_ends_a_pod_is_named(sight: Sight, evidence: str) -> None:
    fate = fate_of(REF, sight)
    assert fate.ended is not None
    assert fate.ended.startswith(evidence)
    assert fate.doubt is None


@pytest.mark.parametrize(
    ("sight", "reason"),
    [
        *((Sight(pod(conditions=[]), node=lost, node_seen=True), "NodeUnreachable") for lost in UNREACHABLE),
        (Sight(pod(phase="Unknown")), "NodeUnreachable"),
        (Sight(pod(reason="NodeLost")), "NodeUnreachable"),
        (Sight(pod(deleted=True), node=node(), node_seen=True), "PodTerminating"),
        (Sight(pod(deleted=True), node=UNREACHABLE[0], node_seen=True), "NodeUnreachable"),
    ],
)
def test_where_nobody_can_tell_nothing_has_ended_and_the_reason_is_said(sight: Sight, reason: str) -> None:
    fate = fate_of(REF, sight)
    assert fate.ended is None
    assert fate.doubt is not None
    assert fate.doubt[0] == reason


def test_a_finished_job_is_no_evidence_for_a_pod_that_may_run_on_behind_a_broken_network() -> None:
    sight = Sight(
        pod(of_job=True, deleted=True), job("Failed"), UNREACHABLE[0], job_seen=True, node_seen=True
    )
    assert fate_of(REF, sight).ended is None


def test_a_job_is_no_evidence_before_the_node_of_an_unwell_pod_was_looked_at() -> None:
    unwell = pod(of_job=True, conditions=[])
    assert node_in_question(unwell) == "worker-1"
    assert fate_of(REF, Sight(unwell, None, job_seen=True)).ended is None


def test_the_node_of_a_pod_that_is_well_or_finished_is_not_looked_at() -> None:
    assert node_in_question(pod()) is None
    assert node_in_question(pod(phase="Failed", conditions=[])) is None


def test_a_running_pod_of_a_running_job_is_left_alone() -> None:
    assert fate_of(REF, Sight(pod(of_job=True), job(), job_seen=True)) == Fate()


uncertain = st.builds(
    Sight,
    st.builds(
        pod,
        of_job=st.booleans(),
        deleted=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Unknown"]),
        conditions=st.just([]),
    ),
    st.none() | st.builds(job, st.sampled_from(["Complete", "Failed", "Suspended"])),
    st.sampled_from(UNREACHABLE),
    st.booleans(),
    st.just(True),
)


@given(uncertain)
def test_no_pod_on_an_unreachable_node_is_ever_taken_for_ended(sight: Sight) -> None:
    assert fate_of(REF, sight).ended is None


def lock(username: str, **spec: Any) -> AssetLock:
    holder = {"username": username, "podName": REF.name, "podUID": REF.uid}
    return AssetLock.model_validate(
        {"metadata": {"name": "first"}, "spec": {"assetName": "vm", "holder": holder, **spec}}
    )


def test_the_pod_of_a_lock_is_in_the_namespace_of_its_service_account() -> None:
    assert pod_of_lock(lock("system:serviceaccount:shop:migrator")) == REF


def test_a_pod_that_is_claimed_for_somebody_who_is_no_service_account_is_not_looked_for() -> None:
    assert pod_of_lock(lock("alice")) is None


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"assetlock.dev/pod": REF.name}, REF),
        ({}, None),
        ({"assetlock.dev/pod": REF.name, "assetlock.dev/owner": "- system:serviceaccount:shop:a"}, None),
        ({"assetlock.dev/pod": REF.name, "assetlock.dev/lock": "first"}, None),
    ],
)
def test_a_hand_made_lease_has_a_pod_if_it_is_bound_to_one_by_uid_and_name(
    annotations: dict[str, str], expected: PodRef | None
) -> None:
    owner = {"assetlock.dev/owner": f"{REF.uid} system:serviceaccount:shop:a"}
    lease = Lease.model_validate({"metadata": {"name": "asset.vm", "annotations": owner | annotations}})
    assert pod_of_lease(lease) == expected


@pytest.mark.parametrize(
    ("sight", "failed"),
    [
        (Sight(pod(phase="Failed")), True),
        (Sight(pod(phase="Succeeded")), False),
        (Sight(None), False),
        (Sight(pod(of_job=True), job("Failed"), job_seen=True), True),
        (Sight(pod(of_job=True), job("Complete"), job_seen=True), False),
        (Sight(pod(of_job=True), None, job_seen=True), False),
    ],
)
def test_what_has_failed_is_told_from_what_has_ended_otherwise(sight: Sight, failed: bool) -> None:
    fate = fate_of(REF, sight)
    assert fate.ended is not None
    assert fate.failed is failed
