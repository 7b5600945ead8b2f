"""Whether the pod behind a lock still lives: evidence, never a guess.

A pod has ended when the API server says so: it is gone, has finished, or its Job has. A pod on a node that nobody
hears from may still be running, whatever its objects say; its lock then lasts until it expires.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from assetlock.core import names
from assetlock.core.identity import owner_of
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.lease import Lease
from assetlock.model.workload import Job, Node, Pod, WorkloadCondition

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclasses.dataclass(frozen=True, slots=True)
class PodRef:
    """One very pod: another of the same name has another UID."""

    namespace: str
    name: str
    uid: str


@dataclasses.dataclass(frozen=True, slots=True)
class Sight:
    """What was found: ``None`` where there is nothing of that name.

    ``job_seen`` and ``node_seen`` say whether the pod's Job and node were looked for.
    """

    pod: Pod | None
    job: Job | None = None
    node: Node | None = None
    job_seen: bool = False
    node_seen: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Fate:
    """What a sight comes to, ready to be read.

    ``ended`` is the evidence that the pod has ended, ``failed`` whether it or its Job has failed in that: its work
    was left undone. ``doubt`` is why nobody can tell, with its reason in a word.
    """

    ended: str | None = None
    failed: bool = False
    doubt: tuple[str, str] | None = None


def fate_of(ref: PodRef, sight: Sight) -> Fate:
    """Whether the pod has ended, lives, or nobody can tell."""
    pod = sight.pod
    if pod is None:
        return Fate(ended=f"pod {ref.name} is gone")
    if pod.metadata.uid != ref.uid:
        return Fate(ended=f"pod {ref.name} is gone; the one that has its name now is another")
    if pod.status.phase in FINISHED_PHASES:
        why = f" ({pod.status.reason})" if pod.status.reason else ""
        return Fate(f"pod {ref.name} has {pod.status.phase.lower()}{why}", pod.status.phase == "Failed")
    lost = _lost_contact(ref, pod, sight)
    if lost:
        return Fate(doubt=("NodeUnreachable", lost))
    ended = _end_of_job(ref, pod, sight)
    if ended:
        return ended
    if pod.metadata.deletion_timestamp is not None:
        return Fate(doubt=("PodTerminating", f"pod {ref.name} is being deleted and has not gone yet"))
    return Fate()


def job_of(pod: Pod) -> tuple[str, str] | None:
    """Name and UID of the Job that the pod belongs to."""
    for owner in pod.metadata.owner_references:
        group, _, _ = str(owner.get("apiVersion", "")).partition("/")
        if owner.get("controller") and owner.get("kind") == "Job" and group == "batch":
            return str(owner.get("name", "")), str(owner.get("uid", ""))
    return None


def node_in_question(pod: Pod) -> str | None:
    """The pod's node, if it takes a look at that to know how the pod is."""
    running = pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None
    if pod.status.phase in FINISHED_PHASES or (running and _says(pod.status.conditions, "Ready", "True")):
        return None
    return pod.spec.node_name


def pod_of_lock(lock: AssetLock) -> PodRef | None:
    """The pod that an AssetLock is for; ``None`` if its holder is no pod."""
    holder = lock.spec.holder
    if holder is None or not holder.pod_uid:
        return None
    return _pod(holder.username, holder.pod_name, holder.pod_uid)


def pod_of_lease(lease: Lease) -> PodRef | None:
    """The pod that a hand-made Lease is bound to."""
    annotations = lease.metadata.annotations
    owner = owner_of(annotations)
    if names.LOCK_ANNOTATION in annotations or not owner.pod_uid:
        return None
    return _pod(owner.username, annotations.get(names.POD_ANNOTATION), owner.pod_uid)


def holds_for(lock: AssetLock) -> PodRef | None:
    """The pod whose end ends the lock: while it waits, unless it says otherwise; while it is held, if it says so."""
    says = lock.spec.release_with_holder
    if says is None:
        says = lock.spec.bind_to == "Pod" or lock.status.state is not LockState.HELD
    return pod_of_lock(lock) if says else None


def _pod(username: str, name: str | None, uid: str) -> PodRef | None:
    """A pod, whose token is always that of a ServiceAccount in its own namespace."""
    if not name or not username.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, _ = username.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return PodRef(namespace, name, uid)


def _lost_contact(ref: PodRef, pod: Pod, sight: Sight) -> str | None:
    node = sight.node
    if node is not None and (
        any(taint.key == UNREACHABLE_TAINT for taint in node.spec.taints)
        or _says(node.status.conditions, "Ready", "Unknown")
    ):
        return f"node {node.metadata.name} of pod {ref.name} is unreachable"
    if pod.status.phase == "Unknown" or pod.status.reason == "NodeLost":
        return f"the node of pod {ref.name} does not answer"
    return None


def _end_of_job(ref: PodRef, pod: Pod, sight: Sight) -> Fate | None:
    """How the pod's Job has ended, if that is known, and if it is known that the pod's node can be reached."""
    job = job_of(pod)
    if job is None or not sight.job_seen or (node_in_question(pod) and not sight.node_seen):
        return None
    name, uid = job
    if sight.job is None or sight.job.metadata.uid != uid:
        return Fate(f"Job {name} of pod {ref.name} is gone")
    for end in ("Complete", "Failed"):
        if _says(sight.job.status.conditions, end, "True"):
            return Fate(f"Job {name} of pod {ref.name} is finished ({end})", end == "Failed")
    return None


def _says(conditions: Sequence[WorkloadCondition], kind: str, status: str) -> bool:
    return any(condition.type == kind and condition.status == status for condition in conditions)
