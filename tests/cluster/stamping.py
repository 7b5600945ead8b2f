"""What the operator does to targets, done by a test under the operator's name."""

from __future__ import annotations

import json
import pathlib
import subprocess
import uuid
from dataclasses import dataclass
from typing import Any

from assetlock.core import names
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity
from assetlock.dev import ControlPlane

ADMINS = ("system:masters",)


@dataclass(frozen=True)
class Cluster:
    """A control plane with one namespace of it."""

    plane: ControlPlane
    namespace: str

    def run(
        self, *args: str, user: str | None = None, groups: tuple[str, ...] = ADMINS, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl in the namespace; as cluster-admin, unless groups say otherwise."""
        where = ("--namespace", self.namespace)
        return self.plane.kubectl(
            *where, *args, user=user, groups=groups if user else (), stdin=stdin, check=False
        )

    def must(self, *args: str, user: str | None = None, stdin: str | None = None) -> str:
        """Run kubectl and expect that it succeeds."""
        done = self.run(*args, user=user, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """An object as it is now."""
        found: dict[str, Any] = json.loads(self.must("get", kind, name, "--output=json"))
        return found

    def uid(self, kind: str, name: str) -> str:
        """An object's UID."""
        return self.must("get", kind, name, "--output=jsonpath={.metadata.uid}")

    def stamp(
        self, kind: str, name: str, *holders: str, asset: str = "vm", pod: str | None = None, token: int = 7
    ) -> None:
        """Fence an object for these users, as the operator would."""
        lines = tuple(StampedHolder(token, Identity(holder, pod)) for holder in holders)
        stamp = str(Stamp(self.uid(kind, name), lines))
        patch = {
            "metadata": {
                "labels": {names.FENCED_LABEL: "true"},
                "annotations": {names.stamp_key(asset, self.namespace): stamp},
            }
        }
        self.patch(kind, name, patch, user=names.CONTROLLER_USER)

    def impersonating(self, user: str, *groups: str, **extra: str) -> pathlib.Path:
        """A kubeconfig of who says that he is an administrator called ``user``, and whatever else he likes."""
        return impersonating(self.plane, user, *ADMINS, *groups, **extra)

    def patch(self, kind: str, name: str, patch: object, *, user: str, check: bool = True) -> str:
        """Merge a patch into an object; gives what kubectl says, or its complaint."""
        command = ("patch", kind, name, "--type=merge", "--patch-file=/dev/stdin")
        done = self.run(*command, user=user, stdin=json.dumps(patch))
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if done.returncode == 0 else done.stderr

    def create(self, manifest: object, *, user: str | None = None, groups: tuple[str, ...] = ADMINS) -> str:
        """Create an object from a manifest; gives kubectl's complaint, or nothing."""
        return self.run("create", "--filename=-", user=user, groups=groups, stdin=json.dumps(manifest)).stderr


def impersonating(plane: ControlPlane, user: str, *groups: str, **extra: str) -> pathlib.Path:
    """A kubeconfig of the administrator's, who impersonates somebody; ``extra`` is what he says of the credential."""
    config = json.loads(plane.kubeconfig.read_text(encoding="utf-8"))
    claims = {f"authentication.kubernetes.io/{key}": [value] for key, value in extra.items()}
    config["users"][0]["user"] |= {"as": user, "as-groups": list(groups), "as-user-extra": claims}
    path = plane.folder / "users" / f"as-{uuid.uuid4().hex}.kubeconfig"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def config_map(name: str = "settings", **metadata: object) -> dict[str, Any]:
    """A small object to lock."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"colour": "red"},
    }


def lease(asset: str = "vm", owner: str | None = None, **spec: object) -> dict[str, Any]:
    """A hand-made Lease that locks an asset."""
    metadata: dict[str, object] = {
        "name": names.lease_name(asset),
        "labels": {names.ASSET_LABEL: asset},
    }
    if owner is not None:
        metadata["annotations"] = {names.OWNER_ANNOTATION: str(Identity(owner))}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"holderIdentity": "job-1", "leaseDurationSeconds": 60, **spec},
    }


def colour(value: str) -> dict[str, object]:
    """A patch of what the small object holds."""
    return {"data": {"colour": value}}
