"""A cluster with the whole operator in it: installed, both processes running under their own rights."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from assetlock.cli import stack as operator_stack
from assetlock.dev import ControlPlane


@dataclass
class Operated:
    """A namespace in such a cluster, with users who have ordinary rights in it."""

    cluster: ControlPlane
    stack: operator_stack.Stack
    namespace: str

    def kubectl(
        self, *args: str, user: str | None = None, stdin: str | None = None, check: bool = True
    ) -> Any:
        return self.cluster.kubectl(*args, "-n", self.namespace, user=user, stdin=stdin, check=check)

    def create(self, *documents: dict[str, Any], user: str | None = None, check: bool = True) -> Any:
        text = yaml.safe_dump_all(documents)
        return self.kubectl("create", "-f", "-", user=user, stdin=text, check=check)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-o", "json").stdout)
        return found

    def wait(self, what: str, condition: str, *, timeout: int = 20) -> None:
        self.kubectl("wait", what, f"--for={condition}", f"--timeout={timeout}s")

    def asset(self, name: str = "vm-1", *configmaps: str, **spec: Any) -> str:
        """An asset, and the ConfigMaps that are its targets."""
        for target in configmaps:
            self.kubectl("create", "configmap", target, "--from-literal=value=0")
        targets = [{"apiVersion": "v1", "kind": "ConfigMap", "name": target} for target in configmaps]
        body = {"type": "VM", **spec}
        if targets:
            body["targets"] = targets
        self.create(document("Asset", name, body))
        return name

    def lock(
        self, name: str, user: str = "alice", *, asset: str = "vm-1", check: bool = True, **spec: Any
    ) -> Any:
        return self.create(document("AssetLock", name, {"assetName": asset, **spec}), user=user, check=check)

    def held(self, name: str, user: str = "alice", **spec: Any) -> dict[str, Any]:
        """A lock that is held."""
        self.lock(name, user, **spec)
        self.wait(f"alk/{name}", "condition=Acquired")
        return self.get("alk", name)

    def condition(self, name: str, kind: str = "Settled") -> dict[str, Any]:
        conditions = self.get("alk", name)["status"]["conditions"]
        found: dict[str, Any] = next(c for c in conditions if c["type"] == kind)
        return found

    def settled(self, name: str, *, timeout: int = 20) -> dict[str, Any]:
        self.wait(f"alk/{name}", "condition=Settled", timeout=timeout)
        return self.condition(name)

    def unfenced(self, target: str) -> bool:
        """Whether a ConfigMap carries nothing of ours."""
        meta = self.get("configmap", target)["metadata"]
        return "labels" not in meta and "annotations" not in meta

    def write(self, target: str, user: str, value: str = "1", check: bool = False) -> Any:
        patch = json.dumps({"data": {"value": value}})
        return self.kubectl(
            "patch", "configmap", target, "--type=merge", f"--patch={patch}", user=user, check=check
        )


def until(holds: Callable[[], bool], what: str, *, seconds: float = 15) -> None:
    """Wait for something that follows by itself."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "assetlock.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def lease(asset: str, user: str = "job", **spec: Any) -> dict[str, Any]:
    labels = {"assetlock.dev/asset": asset}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": f"asset.{asset}", "labels": labels},
        "spec": {"holderIdentity": user, "leaseDurationSeconds": 60, **spec},
    }


SHORT_ELECTIONS = {
    "ASSETLOCK_LEASE_DURATION": "3s",
    "ASSETLOCK_RENEW_DEADLINE": "2s",
    "ASSETLOCK_RETRY_PERIOD": "500ms",
}
"""For tests that stop a leader, and have another take over."""

BREAK_GLASS = ("system:masters", "assetlock:break-glass")
USERS = ("alice", "bob", "carol")


def grant_rights(cluster: ControlPlane) -> None:
    """Ordinary rights for ordinary users, in every namespace."""
    rights = {
        "t-user": ["--verb=*", "--resource=configmaps,deployments.apps,leases.coordination.k8s.io"],
        "t-locks": [
            "--verb=get,list,watch,create,update,patch,delete",
            "--resource=assetlocks.assetlock.dev",
        ],
        "t-lock": ["--verb=lock,get,list", "--resource=assets.assetlock.dev"],
    }
    for role, rules in rights.items():
        cluster.kubectl("create", "clusterrole", role, *rules)
        users = [f"--user={user}" for user in USERS]
        cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", *users)


@contextlib.contextmanager
def operator_in_a_cluster(
    env: Mapping[str, str] | None = None,
) -> Iterator[tuple[ControlPlane, operator_stack.Stack]]:
    """A control plane of its own, the operator with these settings in it, and users with ordinary rights."""
    with ControlPlane() as cluster:
        running = operator_stack.start(cluster, env=env)
        grant_rights(cluster)
        yield cluster, running


@pytest.fixture(scope="session")
def operator_cluster() -> Iterator[tuple[ControlPlane, operator_stack.Stack]]:
    with operator_in_a_cluster() as running:
        yield running


@pytest.fixture
def operated(operator_cluster: tuple[ControlPlane, operator_stack.Stack]) -> Iterator[Operated]:
    cluster, running = operator_cluster
    namespace = f"t-{uuid.uuid4().hex[:10]}"
    cluster.kubectl("create", "namespace", namespace)
    yield Operated(cluster, running, namespace)
    # A test may end with a lock that is held: no one else may delete its namespace.
    command = ("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
    cluster.kubectl(*command, user="root", groups=BREAK_GLASS)
