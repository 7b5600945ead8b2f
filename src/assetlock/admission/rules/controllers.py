"""Who may go on updating a locked object: the controllers of Kubernetes itself, by exact name.

They finish what the holder began. They may not delete, nor give the object to another owner or claim. The garbage
collector, the namespace controller and the pod autoscaler are not among them, since they begin things. The policy for
targets has the same list.
"""

from __future__ import annotations

from assetlock.admission.review import Review, mapping
from assetlock.admission.rules import changes

_CONTROLLERS = (
    "attachdetach-controller",
    "certificate-controller",
    "cloud-controller-manager",
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoint-controller",
    "endpointslice-controller",
    "endpointslicemirroring-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "job-controller",
    "node-controller",
    "persistent-volume-binder",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "resource-claim-controller",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "route-controller",
    "service-account-controller",
    "service-cidrs-controller",
    "service-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
    "ttl-controller",
    "vac-protection-controller",
)

CONTROLLERS = frozenset(
    {"system:kube-controller-manager", "system:kube-scheduler", "system:cloud-controller-manager"}
    | {f"system:serviceaccount:kube-system:{name}" for name in _CONTROLLERS}
)


def may_update(review: Review) -> bool:
    """Whether the requester is such a controller, or the kubelet of the very node that it updates."""
    return review.operation == "UPDATE" and _is_at_home(review) and not _changes_hands(review)


def may_create(review: Review) -> bool:
    """Whether the requester is such a controller, making what belongs to the holder's things, or that kubelet."""
    return review.operation == "CREATE" and _is_at_home(review)


def _changes_hands(review: Review) -> bool:
    """Whether an owner adopts the object, or a claim binds it: strangers have controllers do this for them."""
    if "ownerReferences" in changes.metadata(review):
        return True
    claims = [mapping(thing.get("spec")).get("claimRef") for thing in (review.old, review.new)]
    return review.kind == "PersistentVolume" and claims[0] != claims[1]


def _is_at_home(review: Review) -> bool:
    if review.requester.username in CONTROLLERS:
        return True
    is_node = review.group == "" and review.kind == "Node"
    return is_node and review.requester.username == f"system:node:{review.name}"
