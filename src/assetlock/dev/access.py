"""Ways into a running local control plane: kubeconfigs for anybody, tokens, and its own kubectl.

All of it works from the control plane's folder alone, so that any process of the same user can do it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assetlock.dev import pki
from assetlock.dev.errors import BadRequest

_KUBECTL_TIMEOUT = 120.0


@dataclass(eq=False)
class Access:
    """A control plane's folder, address and kubectl."""

    folder: pathlib.Path
    server: str
    kubectl_path: pathlib.Path

    @property
    def kubeconfig(self) -> pathlib.Path:
        """The administrator's."""
        return self.folder / "kubeconfig"

    def kubeconfig_for(self, user: str, *groups: str) -> pathlib.Path:
        """A kubeconfig that authenticates as `user` by a client certificate.

        A name or group too long for a certificate is impersonated by the administrator instead.
        """
        if not user or not all(groups):
            raise BadRequest("a user's or group's name can't be empty")
        path = self._user_path("user", user, *groups)
        if not path.exists():
            if max(map(len, (user, *groups))) > pki.LONGEST_NAME:
                admin = self._stored_user("admin")
                self._write(path, {**admin, "as": user, "as-groups": list(groups)})
            else:
                self._write(path, self._client(user, *groups))
        return path

    def kubeconfig_for_service_account(
        self, namespace: str, name: str, *, pod: str | None = None, duration: str = "24h"
    ) -> pathlib.Path:
        """A kubeconfig with a new token of a ServiceAccount, bound to a pod if one is named."""
        path = self._user_path("service-account", namespace, name, pod or "")
        token = self.token_for(namespace, name, pod=pod, duration=duration)
        self._write(path, {"token": token}, namespace)
        return path

    def token_for(
        self, namespace: str, service_account: str, *, pod: str | None = None, duration: str = "1h"
    ) -> str:
        """A new token of a ServiceAccount, bound to a pod if one is named."""
        bound = () if pod is None else ("--bound-object-kind=Pod", f"--bound-object-name={pod}")
        arguments = ("create", "token", service_account, f"--namespace={namespace}", f"--duration={duration}")
        return self.kubectl(*arguments, *bound).stdout.strip()

    def kubectl(
        self,
        *args: str,
        user: str | None = None,
        groups: Sequence[str] = (),
        stdin: str | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as `user`, or as the administrator."""
        path = self.kubeconfig if user is None else self.kubeconfig_for(user, *groups)
        done = subprocess.run(
            [str(self.kubectl_path), *args],
            env=self.environment(path),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=_KUBECTL_TIMEOUT,
            check=False,
        )
        if check and done.returncode != 0:
            error = subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
            error.add_note(done.stderr)
            raise error
        return done

    def environment(self, kubeconfig: pathlib.Path | None = None) -> dict[str, str]:
        """Ours, with kubectl on the path and pointed at this control plane."""
        return {**os.environ, **self.exports(kubeconfig)}

    def exports(self, kubeconfig: pathlib.Path | None = None) -> dict[str, str]:
        """What `dev env` sets. kubectl's discovery cache is ours too, as ports are used again."""
        tools = str(self.kubectl_path.parent)
        rest = [entry for entry in os.environ.get("PATH", "").split(os.pathsep) if entry != tools]
        return {
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
            "PATH": os.pathsep.join((tools, *rest)),
        }

    def write_system_kubeconfigs(self) -> None:
        """The administrator's and the controller manager's."""
        self._write(self.kubeconfig, self._stored_user("admin"))
        self._write(self.folder / "controller-manager.kubeconfig", self._stored_user("controller-manager"))

    def _stored_user(self, name: str) -> dict[str, Any]:
        return _certificate_user(pki.Pair.load(self.folder / "pki", name))

    def _client(self, user: str, *groups: str) -> dict[str, Any]:
        return _certificate_user(pki.Authority.load(self.folder / "pki", "ca").client(user, groups))

    def _user_path(self, *parts: str) -> pathlib.Path:
        readable = re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(filter(None, parts[1:])))[:80]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]
        return self.folder / "users" / f"{readable}.{digest}.kubeconfig"

    def _write(self, path: pathlib.Path, user: Mapping[str, Any], namespace: str = "default") -> None:
        authority = (self.folder / "pki" / "ca.crt").read_bytes()
        cluster = {"server": self.server, "certificate-authority-data": _base64(authority)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "user", "user": dict(user)}],
            "contexts": [
                {"name": "local", "context": {"cluster": "local", "user": "user", "namespace": namespace}}
            ],
            "current-context": "local",
        }
        path.parent.mkdir(mode=0o700, exist_ok=True)
        pki.write_private(path, json.dumps(document, indent=1).encode())


def _certificate_user(pair: pki.Pair) -> dict[str, Any]:
    return {
        "client-certificate-data": _base64(pair.certificate),
        "client-key-data": _base64(pair.key),
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
