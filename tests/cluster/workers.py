"""Pods that hold locks: no kubelet is here, so a test says how they are; their tokens are real, and bound to them."""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass
from typing import Any

from tests.cluster.conftest import Operated, document

READY = {"type": "Ready", "status": "True"}
ACCOUNT = "worker"


@dataclass(frozen=True)
class Worker:
    """A pod, and whoever runs in it."""

    operated: Operated
    name: str
    uid: str
    kubeconfig: pathlib.Path

    @property
    def username(self) -> str:
        return f"system:serviceaccount:{self.operated.namespace}:{ACCOUNT}"

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> Any:
        """Run kubectl in the pod."""
        return self.operated.kubectl(f"--kubeconfig={self.kubeconfig}", *args, stdin=stdin, check=check)

    def create(self, body: dict[str, Any], *, check: bool = True) -> Any:
        return self.kubectl("create", "-f", "-", stdin=json.dumps(body), check=check)

    def lock(self, name: str, asset: str = "vm-1", **spec: Any) -> None:
        self.create(document("AssetLock", name, {"assetName": asset, **spec}))

    def write(self, target: str) -> Any:
        patch = '{"data":{"value":"by a pod"}}'
        return self.kubectl("patch", "configmap", target, "--type=merge", f"--patch={patch}", check=False)

    def becomes(self, phase: str, *conditions: dict[str, str], **status: Any) -> None:
        """What a kubelet would report."""
        told = {"phase": phase, "conditions": list(conditions), **status}
        set_status(self.operated, f"pod/{self.name}", told)

    def vanish(self) -> None:
        """Deleted, and not even a kubelet has to agree."""
        self.operated.kubectl("delete", "pod", self.name, "--force", "--grace-period=0")


def set_status(operated: Operated, what: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    operated.kubectl("patch", what, "--subresource=status", "--type=merge", f"--patch={patch}")


def allow_workers(operated: Operated) -> None:
    """A ServiceAccount with the rights that locking takes."""
    operated.kubectl("create", "serviceaccount", ACCOUNT)
    verbs = "get,list,watch,create,update,patch,delete"
    locked = "configmaps,leases.coordination.k8s.io,assetlocks.assetlock.dev"
    operated.kubectl("create", "role", ACCOUNT, f"--verb={verbs}", f"--resource={locked}")
    operated.kubectl("create", "role", "locker", "--verb=lock,get", "--resource=assets.assetlock.dev")
    account = f"--serviceaccount={operated.namespace}:{ACCOUNT}"
    for role in (ACCOUNT, "locker"):
        operated.kubectl("create", "rolebinding", role, f"--role={role}", account)


def start(
    operated: Operated, name: str, *, node: str | None = None, owner: dict[str, Any] | None = None
) -> Worker:
    """A running pod."""
    spec: dict[str, Any] = {"serviceAccountName": ACCOUNT, "containers": [{"name": "c", "image": "none"}]}
    if node is not None:
        spec["nodeName"] = node
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner] if owner else []}
    operated.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    worker = in_pod(operated, name)
    worker.becomes("Running", READY)
    return worker


def in_pod(operated: Operated, name: str) -> Worker:
    """Whoever runs in a pod that there is."""
    uid = operated.get("pod", name)["metadata"]["uid"]
    kubeconfig = operated.cluster.kubeconfig_for_service_account(operated.namespace, ACCOUNT, pod=name)
    own = kubeconfig.with_name(f"{uid}.kubeconfig")
    own.write_bytes(kubeconfig.read_bytes())
    return Worker(operated, name, uid, own)
