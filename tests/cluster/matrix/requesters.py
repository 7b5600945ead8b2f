"""Who tries to write. All of them may do so by RBAC: what refuses them is the fence, or nothing does."""

from __future__ import annotations

import dataclasses

from tests.cluster.matrix.objects import NAMESPACE, SERVICE_ACCOUNT

from assetlock.core import names

WRITERS = "matrix-writers"
"""A group with every verb that objects have, but without our own verbs such as ``unlock``."""

MASTERS = "system:masters"


@dataclasses.dataclass(frozen=True, slots=True)
class Requester:
    """An authenticated user: by certificate, by the token of a pod, or impersonated by an administrator."""

    title: str
    username: str
    groups: tuple[str, ...] = (WRITERS,)
    pod: str | None = None
    is_impersonated: bool = False

    def __str__(self) -> str:
        return self.title


def _controller(title: str, account: str) -> Requester:
    return Requester(title, f"system:serviceaccount:kube-system:{account}")


_WORKER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT.name}"

HOLDER = Requester("holder", _WORKER, pod="one")
OTHER_POD = Requester("same user in another pod", _WORKER, pod="two")
NO_POD = Requester("same user without a pod", _WORKER)
FORMER = Requester("former holder", "former")
STRANGER = Requester("stranger", "stranger")
POWERFUL_STRANGER = Requester("stranger (cluster-admin)", "powerful-stranger")
ADMIN = Requester("system:masters", "admin", (MASTERS,))
COLLECTOR = _controller("garbage collector", "generic-garbage-collector")
NAMESPACE_CONTROLLER = _controller("namespace controller", "namespace-controller")
AUTOSCALER = _controller("pod autoscaler", "horizontal-pod-autoscaler")
CONTROLLER = _controller("deployment controller", "deployment-controller")
GLASS_BREAKER = Requester("break-glass", "oncall", (MASTERS, names.BREAK_GLASS_GROUP), is_impersonated=True)

REQUESTERS = (
    HOLDER,
    OTHER_POD,
    NO_POD,
    FORMER,
    STRANGER,
    POWERFUL_STRANGER,
    ADMIN,
    COLLECTOR,
    NAMESPACE_CONTROLLER,
    AUTOSCALER,
    CONTROLLER,
    GLASS_BREAKER,
)
