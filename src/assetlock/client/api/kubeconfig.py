"""Reading kubeconfig files, as kubectl reads them.

Several files are merged entry by entry: the first file to name a cluster, user or context wins. Paths are relative to
the folder of their own file. Understood: CA, certificate, key and token, as data or as a file; username and password;
`exec` plugins; `proxy-url`, `tls-server-name`, `insecure-skip-tls-verify`; impersonation. Wrong or missing entries
raise `KubeconfigError` with the name of the entry.
"""

from __future__ import annotations

import base64
import binascii
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from assetlock.client.api.credentials import CredentialSource, Fixed, TokenFile, basic, bearer
from assetlock.client.api.plugins import API_VERSIONS, Plugin, PluginCredentials
from assetlock.client.api.proxies import check_proxy
from assetlock.client.api.tls import Tls

Fields: TypeAlias = Mapping[str, Any]
Headers: TypeAlias = tuple[tuple[str, str], ...]

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PASSED_TO_PLUGINS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
)


class KubeconfigError(ValueError):
    """A kubeconfig can't be used; says which entry is wrong."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A named cluster, user or context, and the folder that its relative paths start from."""

    what: str
    fields: Fields
    folder: Path

    def text(self, name: str) -> str | None:
        """A field that is text, or None if it is absent or empty."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise KubeconfigError(f"{self.what}: {name} must be text")
        return value or None

    def path(self, name: str) -> Path | None:
        """A field that is the path of a file."""
        value = self.text(name)
        return self.folder / value if value else None

    def data(self, name: str) -> str | None:
        """A field that is text in base64."""
        value = self.text(name)
        try:
            return base64.b64decode("".join(value.split()), validate=True).decode("ascii") if value else None
        except (binascii.Error, UnicodeDecodeError) as error:
            raise KubeconfigError(f"{self.what}: {name} is not a PEM text in base64") from error


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the chosen context comes to."""

    context: str
    server: str
    namespace: str
    tls: Tls
    credentials: CredentialSource
    proxy: str | None
    headers: Headers


def load(paths: Sequence[Path], context: str | None = None) -> Chosen:
    """The context (by default the current one) of the merged files."""
    files = [(path.absolute().parent, _parsed(path)) for path in paths]
    name = context or next(filter(None, (file.get("current-context") for _, file in files)), None)
    if not name:
        raise KubeconfigError(f"{_named(paths)}: no context is chosen, and there is no current-context")
    entry = _find(files, "context", name, paths)
    cluster = _find(files, "cluster", entry.text("cluster"), paths)
    user = _find(files, "user", entry.text("user"), paths) if entry.text("user") else _NOBODY
    return Chosen(
        context=name,
        server=_server(cluster),
        namespace=entry.text("namespace") or "default",
        tls=_tls(cluster, user),
        credentials=_credentials(cluster, user),
        proxy=_proxy(cluster),
        headers=tuple(_impersonation(user)),
    )


def context_names(paths: Iterable[Path]) -> list[str]:
    """The contexts that the files name, in their order, for completion."""
    items = (item for path in paths for item in _parsed(path).get("contexts") or [])
    return list(
        dict.fromkeys(str(item["name"]) for item in items if isinstance(item, dict) and "name" in item)
    )


_NOBODY = Entry("no user", {}, Path())


def _named(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


def _parsed(path: Path) -> Fields:
    try:
        parsed = yaml.load(path.read_text(encoding="utf-8"), _Loader) or {}  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{path} is not YAML: {error}") from error
    if not isinstance(parsed, dict):
        raise KubeconfigError(f"{path} is not a kubeconfig")
    return parsed


def _find(files: Sequence[tuple[Path, Fields]], kind: str, name: str | None, paths: Sequence[Path]) -> Entry:
    for folder, file in files:
        items = [item for item in file.get(f"{kind}s") or [] if isinstance(item, dict)]
        for item in items:
            if item.get("name") == name and isinstance(item.get(kind), dict):
                return Entry(f"{kind} {name!r}", item[kind], folder)
    raise KubeconfigError(f"{_named(paths)}: there is no {kind} named {name!r}")


def _server(cluster: Entry) -> str:
    server = (cluster.text("server") or "").rstrip("/")
    url = urllib.parse.urlsplit(server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise KubeconfigError(f"{cluster.what}: server must be a URL like https://host:6443, not {server!r}")
    return server


def _proxy(cluster: Entry) -> str | None:
    proxy = cluster.text("proxy-url")
    try:
        return check_proxy(proxy) if proxy else None
    except ValueError as error:
        raise KubeconfigError(f"{cluster.what}: proxy-url: {error}") from error


def _tls(cluster: Entry, user: Entry) -> Tls:
    tls = Tls(
        ca_file=cluster.path("certificate-authority"),
        ca_data=cluster.data("certificate-authority-data"),
        certificate_file=user.path("client-certificate"),
        certificate_data=user.data("client-certificate-data"),
        key_file=user.path("client-key"),
        key_data=user.data("client-key-data"),
        server_name=cluster.text("tls-server-name"),
        insecure=bool(cluster.fields.get("insecure-skip-tls-verify")),
    )
    if bool(tls.certificate_data or tls.certificate_file) != bool(tls.key_data or tls.key_file):
        raise KubeconfigError(f"{user.what}: a client certificate and its key go together; one is missing")
    for file in tls.files():
        if not file.is_file():
            raise KubeconfigError(f"{cluster.what}, {user.what}: there is no file {file}")
    return tls


def _credentials(cluster: Entry, user: Entry) -> CredentialSource:
    token_file, token, username = user.path("tokenFile"), user.text("token"), user.text("username")
    if token_file:
        return TokenFile(token_file)
    if token:
        return Fixed(bearer(token))
    if username:
        return Fixed(basic(username, user.text("password") or ""))
    if "exec" in user.fields:
        return PluginCredentials(_plugin(cluster, user))
    if "auth-provider" in user.fields:
        raise KubeconfigError(
            f"{user.what}: auth-provider is gone since Kubernetes 1.26; use the exec plugin of your provider"
        )
    return Fixed()


def _plugin(cluster: Entry, user: Entry) -> Plugin:
    given = user.fields["exec"]
    if not isinstance(given, dict):
        raise KubeconfigError(f"{user.what}: exec must be a mapping")
    entry = Entry(f"{user.what}: exec", given, user.folder)
    command, api_version = entry.text("command"), entry.text("apiVersion")
    if not command:
        raise KubeconfigError(f"{entry.what}: command is missing")
    if api_version not in API_VERSIONS:
        raise KubeconfigError(f"{entry.what}: apiVersion must be one of {', '.join(API_VERSIONS)}")
    return Plugin(
        command=str(entry.folder / command) if "/" in command else command,
        api_version=api_version,
        args=[str(arg) for arg in given.get("args") or []],
        env={str(item["name"]): str(item["value"]) for item in given.get("env") or []},
        interactive_mode=entry.text("interactiveMode") or "IfAvailable",
        install_hint=entry.text("installHint") or "",
        cluster=_cluster_info(cluster) if given.get("provideClusterInfo") else None,
    )


def _cluster_info(cluster: Entry) -> Fields:
    """What a plugin is passed about the cluster: the file's own fields, with the CA's file as data."""
    info = {name: cluster.fields[name] for name in _PASSED_TO_PLUGINS if cluster.fields.get(name)}
    ca_file = cluster.path("certificate-authority")
    if ca_file and "certificate-authority-data" not in info:
        info["certificate-authority-data"] = base64.b64encode(ca_file.read_bytes()).decode("ascii")
    for extension in cluster.fields.get("extensions") or []:
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _impersonation(user: Entry) -> Iterable[tuple[str, str]]:
    if name := user.text("as"):
        yield "Impersonate-User", name
    if uid := user.text("as-uid"):
        yield "Impersonate-Uid", uid
    for group in user.fields.get("as-groups") or []:
        yield "Impersonate-Group", str(group)
    for key, values in (user.fields.get("as-user-extra") or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{urllib.parse.quote(str(key), safe='')}", str(value)
