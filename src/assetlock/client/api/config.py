"""Where the API server is and who the client is to it: from a kubeconfig, or from inside a pod.

`load_config` looks where kubectl looks: the file it is given, `$KUBECONFIG` (several files are merged),
`~/.kube/config`, and at last the pod's ServiceAccount. What is missing or malformed is refused here, by name; what
the certificates hold shows at the first request.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assetlock.client.api.credentials import CredentialSource, Fixed, TokenFile
from assetlock.client.api.errors import ConfigError
from assetlock.client.api.proxies import check_proxy, proxy_for
from assetlock.client.api.tls import Tls

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Config:
    """A cluster to talk to, and as whom. ``headers`` go with every request: impersonation."""

    server: str
    namespace: str = "default"
    tls: Tls = field(default_factory=Tls)
    credentials: CredentialSource = field(default_factory=Fixed)
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def acting_as(self, user: str | None = None, groups: Sequence[str] = ()) -> Config:
        """The same cluster, as another user and groups, by impersonation; without either, as it is.

        ConfigError for groups without a user, which the API server would refuse.
        """
        if not user and not groups:
            return self
        given = (
            [("Impersonate-User", user)] if user else [h for h in self.headers if h[0] == "Impersonate-User"]
        )
        if not given:
            raise ConfigError("impersonating groups needs a user: add --as")
        wanted = [*given, *(("Impersonate-Group", group) for group in groups)]
        return dataclasses.replace(self, headers=tuple((name, str(value)) for name, value in wanted))


def load_config(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT_FOLDER,
) -> Config:
    """The configuration that kubectl would use here; `ConfigError` if there is none or it can't be used."""
    environ = os.environ if environ is None else environ
    paths = kubeconfig_paths(kubeconfig, environ)
    try:
        if paths:
            return _from_kubeconfig(paths, context, environ)
        if environ.get("KUBERNETES_SERVICE_HOST") and context is None:
            return _in_cluster(service_account, environ)
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from error
    raise ConfigError(
        "no API server is configured: pass a kubeconfig, set KUBECONFIG, make ~/.kube/config, "
        "or run in a pod with a ServiceAccount"
    )


def kubeconfig_paths(path: Path | None = None, environ: Mapping[str, str] | None = None) -> list[Path]:
    """The kubeconfigs to read. One that is named must exist; of those in a list, one must."""
    environ = os.environ if environ is None else environ
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


def _from_kubeconfig(paths: Sequence[Path], context: str | None, environ: Mapping[str, str]) -> Config:
    from assetlock.client.api import kubeconfig  # a pod needs no YAML

    chosen = kubeconfig.load(paths, context)
    return Config(
        server=chosen.server,
        namespace=chosen.namespace,
        tls=chosen.tls,
        credentials=chosen.credentials,
        proxy=chosen.proxy or _from_environment(chosen.server, environ),
        headers=chosen.headers,
    )


def _from_environment(server: str, environ: Mapping[str, str]) -> str | None:
    proxy = proxy_for(server, environ)
    return check_proxy(proxy) if proxy else None


def _in_cluster(folder: Path, environ: Mapping[str, str]) -> Config:
    token, namespace = folder / "token", folder / "namespace"
    if not token.is_file():
        raise ConfigError(f"this looks like a pod, but it has no ServiceAccount token: {token} is missing")
    host = environ["KUBERNETES_SERVICE_HOST"].strip("[]")
    port = environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Config(
        server=server,
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "default",
        tls=Tls(ca_file=folder / "ca.crt"),
        credentials=TokenFile(token),
        proxy=_from_environment(server, environ),
    )
