"""Where the API server is and who we are to it: from a kubeconfig, or from inside a pod.

`load_config` looks where kubectl looks: the file it is given, `$KUBECONFIG` (several files are merged, the
first to name something wins), `~/.kube/config`, and at last the pod's ServiceAccount. Paths in a kubeconfig
are relative to its own folder. What is missing or malformed is refused here, by name; what the certificates
hold shows at the first request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assetlock.kube.credentials import CredentialSource, Fixed, TokenFile
from assetlock.kube.errors import KubeError
from assetlock.kube.kubeconfig import Chosen, load
from assetlock.kube.proxies import proxy_for
from assetlock.kube.tls import Tls

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(KubeError):
    """There is no usable configuration; says what is missing or wrong."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """A cluster to talk to, and as whom."""

    server: str
    namespace: str = "default"
    tls: Tls = field(default_factory=Tls)
    credentials: CredentialSource = field(default_factory=Fixed)
    proxy: str | None = None
    #: Headers of every request, in order: impersonation.
    headers: tuple[tuple[str, str], ...] = ()


def load_config(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT_FOLDER,
) -> ClusterConfig:
    """The configuration that kubectl would use here; `ConfigError` if there is none or it can't be used."""
    environ = os.environ if environ is None else environ
    paths = _kubeconfigs(kubeconfig, environ)
    try:
        if paths:
            return _from_kubeconfig(load(paths, context), environ)
        if environ.get("KUBERNETES_SERVICE_HOST"):
            return _in_cluster(service_account, environ)
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from error
    raise ConfigError(
        "no API server is configured: pass a kubeconfig, set KUBECONFIG, make ~/.kube/config, "
        "or run in a pod with a ServiceAccount"
    )


def _kubeconfigs(path: Path | None, environ: Mapping[str, str]) -> list[Path]:
    """The kubeconfigs to read. One that is named must exist; of those in a list, one must."""
    if path is not None:
        if not path.is_file():
            raise ConfigError(f"there is no kubeconfig {path}")
        return [path]
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    found = [candidate for candidate in named or [home] if candidate.is_file()]
    if named and not found:
        raise ConfigError(f"there is no kubeconfig {os.pathsep.join(map(str, named))} (from $KUBECONFIG)")
    return found


def _from_kubeconfig(chosen: Chosen, environ: Mapping[str, str]) -> ClusterConfig:
    return ClusterConfig(
        server=chosen.server,
        namespace=chosen.namespace,
        tls=chosen.tls,
        credentials=chosen.credentials,
        proxy=chosen.proxy or proxy_for(chosen.server, environ),
        headers=chosen.headers,
    )


def _in_cluster(folder: Path, environ: Mapping[str, str]) -> ClusterConfig:
    token = folder / "token"
    if not token.is_file():
        raise ConfigError(f"this looks like a pod, but it has no ServiceAccount token: {token} is missing")
    host = environ["KUBERNETES_SERVICE_HOST"].strip("[]")
    port = environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    namespace = folder / "namespace"
    return ClusterConfig(
        server=server,
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "default",
        tls=Tls(ca_file=folder / "ca.crt"),
        credentials=TokenFile(token),
        proxy=proxy_for(server, environ),
    )
