"""The shop: a namespace with a ConfigMap ``app`` that asset ``vm`` stands for, and the people around it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assetlock.cli import stack as operator_stack
from assetlock.core import names
from assetlock.dev import ControlPlane
from tests.cluster.conftest import BREAK_GLASS, Operated, document
from tests.cluster.stamping import impersonating

ROLES = {
    "alice": ("edit", "assetlock-user"),
    "mallory": ("edit", "assetlock-user"),
    "eddie": ("edit",),
}


Who = str | pathlib.Path
"""A user's name, or a kubeconfig."""


class Shop(Operated):
    """One namespace, and what its people do there."""

    def tries(self, user: Who, *args: str, stdin: object = None) -> subprocess.CompletedProcess[str]:
        """What comes of a command that may be refused. ``stdin`` is an object or several, or text."""
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        if isinstance(user, pathlib.Path):
            args, name = (*args, f"--kubeconfig={user}"), None
        else:
            name = user
        done: subprocess.CompletedProcess[str] = self.kubectl(*args, user=name, stdin=text, check=False)
        return done

    def refused(self, user: Who, *args: str, stdin: object = None) -> str:
        """Expect a refusal; gives what the user reads."""
        done = self.tries(user, *args, stdin=stdin)
        assert done.returncode != 0, f"{user} got through: {' '.join(args)}: {done.stdout}"
        return done.stderr

    def does(self, user: Who, *args: str, stdin: object = None) -> str:
        """Expect success; gives what kubectl prints."""
        done = self.tries(user, *args, stdin=stdin)
        assert done.returncode == 0, f"{user} was refused: {' '.join(args)}: {done.stderr}"
        return done.stdout

    def patched(self, user: Who, target: str, patch: object, *args: str) -> bool:
        """Whether a merge patch of ``kind/name`` goes through."""
        command = ("patch", target, "--type=merge", f"--patch={json.dumps(patch)}", *args)
        return self.tries(user, *command).returncode == 0

    def stands_for(self, asset: str, *targets: tuple[str, str, str], **spec: Any) -> None:
        """An asset for objects, given as apiVersion, kind and name."""
        listed = [{"apiVersion": version, "kind": kind, "name": name} for version, kind, name in targets]
        self.create(document("Asset", asset, {"targets": listed, **spec}))

    def stamps(self, target: str) -> dict[str, str]:
        """The stamps on ``kind/name``, by asset."""
        annotations = self.metadata(target).get("annotations", {})
        return {found[1]: text for key, text in annotations.items() if (found := names.claimant(key))}

    def run_of(self, account: str, run: str) -> pathlib.Path:
        """A kubeconfig with a token of its own for a ServiceAccount here, which may do what alice may."""
        if self.kubectl("get", "serviceaccount", account, check=False).returncode:
            self.kubectl("create", "serviceaccount", account)
            user = f"system:serviceaccount:{self.namespace}:{account}"
            self.create(*(_binding(user, role) for role in ROLES["alice"]))
        shared = self.cluster.kubeconfig_for_service_account(self.namespace, account)
        return shared.rename(shared.with_name(f"{self.namespace}-{account}-{run}.kubeconfig"))

    def impersonating(self, user: str, **extra: str) -> pathlib.Path:
        """A kubeconfig of who says that he is somebody else, and whatever he likes about his credential."""
        return impersonating(self.cluster, user, **extra)

    def metadata(self, target: str) -> dict[str, Any]:
        """The metadata of ``kind/name`` as it is now."""
        found: dict[str, Any] = json.loads(self.kubectl("get", target, "--output=json").stdout)["metadata"]
        return found


@pytest.fixture(scope="session")
def town() -> Iterator[tuple[ControlPlane, operator_stack.Stack]]:
    """A control plane with the operator in it, and root."""
    with ControlPlane() as cluster:
        running = operator_stack.start(cluster)
        cluster.kubectl("create", "clusterrolebinding", "root", "--clusterrole=cluster-admin", "--user=root")
        yield cluster, running


@pytest.fixture
def open_shop(town: tuple[ControlPlane, operator_stack.Stack]) -> Iterator[Callable[[], Shop]]:
    """Makes a fresh namespace with nothing in it but people's rights."""
    cluster, running = town
    made = []

    def make() -> Shop:
        shop = Shop(cluster, running, f"shop-{uuid.uuid4().hex[:8]}")
        cluster.kubectl("create", "namespace", shop.namespace)
        made.append(shop.namespace)
        shop.create(*(_binding(user, role) for user, roles in ROLES.items() for role in roles))
        return shop

    yield make
    for name in made:
        command = ("delete", "namespace", name, "--wait=false", "--ignore-not-found")
        cluster.kubectl(*command, user="janitor", groups=BREAK_GLASS)


@pytest.fixture
def shop(open_shop: Callable[[], Shop]) -> Shop:
    """A namespace with asset ``vm``, which stands for ConfigMap ``app``. Nobody holds it yet."""
    shop = open_shop()
    shop.asset("vm", "app")
    return shop


@pytest.fixture
def locked(shop: Shop) -> Shop:
    """The same, held by alice."""
    shop.held("work", "alice", asset="vm", ttl="1h")
    return shop


def _binding(user: str, role: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{user.rpartition(':')[2]}-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
