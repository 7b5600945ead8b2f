"""Puts the resources, rights, policies and webhooks into a cluster, and takes note of where the webhooks are.

Everything is applied (server-side, as field manager ``assetlock``), so doing it twice changes nothing. The order
matters: definitions before what uses them, policies before anything could be locked.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.resources
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import yaml

from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import KubeError
from assetlock.kube.resources import CUSTOM_RESOURCE_DEFINITIONS

_CHECKOUT = pathlib.Path(__file__).parents[2]
_FIRST = ("namespace.yaml", "rbac.yaml")
_LAST = ("webhooks.yaml",)
_WORKLOADS = "workload-"
"""Files with the Deployments, and with what is for them."""

ESTABLISHED_WITHIN = 30.0

Manifest = dict[str, Any]


class InstallError(Exception):
    """The installation could not be completed; says what is missing."""


async def install(
    api: Api, *, image: str | None = None, webhook_url: str | None = None, ca_bundle: str | None = None
) -> list[str]:
    """Apply everything; gives what was applied, as ``Kind name``.

    With an ``image`` both processes run in the cluster, as Deployments; without one they run elsewhere.
    ``webhook_url`` (``https://host:port``) is where the API server finds the webhooks when they do not run behind the
    Service in the cluster. ``ca_bundle`` (PEM) is whom it trusts there; by default the process writes it itself.
    """
    definitions = list(manifests("crds"))
    discovery = Discovery(api)
    applied = []
    for manifest in definitions:
        await api.apply(CUSTOM_RESOURCE_DEFINITIONS, None, manifest)
        applied.append(_title(manifest))
    await asyncio.gather(*(_established(api, manifest["metadata"]["name"]) for manifest in definitions))
    for manifest in (*manifests("manifests"), *(workloads(image) if image else ())):
        located(manifest, webhook_url, ca_bundle)
        resource = await discovery.resource_for(manifest["apiVersion"], manifest["kind"])
        await api.apply(resource, manifest["metadata"].get("namespace"), manifest)
        applied.append(_title(manifest))
    return applied


def manifests(folder: str) -> Iterator[Manifest]:
    """The objects in ``crds`` or ``manifests``, in the order in which they are to be applied; no workloads."""
    return _read(folder, lambda name: not name.startswith(_WORKLOADS))


def workloads(image: str) -> Iterator[Manifest]:
    """The Deployments that run this image, and the Services and budgets for their pods."""
    for manifest in _read("manifests", lambda name: name.startswith(_WORKLOADS)):
        if manifest["kind"] == "Deployment":
            for container in manifest["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
        yield manifest


def _read(folder: str, wanted: Callable[[str], bool]) -> Iterator[Manifest]:
    paths = {path.name: path for path in _folder(folder).iterdir() if path.name.endswith(".yaml")}
    for name in _ordered(filter(wanted, paths)):
        for manifest in yaml.safe_load_all(paths[name].read_text(encoding="utf-8")):
            if manifest:
                yield manifest


def located(manifest: Manifest, webhook_url: str | None, ca_bundle: str | None) -> None:
    """Make the webhooks in a manifest be called at a URL, if one is given, and trust what is given."""
    if manifest["kind"] != "MutatingWebhookConfiguration":
        return
    for webhook in manifest["webhooks"]:
        config = webhook["clientConfig"]
        if webhook_url is not None:
            del config["service"]
            config["url"] = f"{webhook_url.rstrip('/')}/{names.webhook_path(webhook['name'])}"
        if ca_bundle is not None:
            config["caBundle"] = base64.b64encode(ca_bundle.encode()).decode("ascii")


async def _established(api: Api, name: str) -> None:
    """Wait until the API server serves a definition."""
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN):
            while not _is_established(await api.get(CUSTOM_RESOURCE_DEFINITIONS, None, name)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise InstallError(f"the API server does not serve {name} after {ESTABLISHED_WITHIN:.0f} s") from None
    except KubeError as error:
        raise InstallError(f"{name}: {error}") from error


def _is_established(definition: Manifest) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _folder(name: str) -> Any:
    """The manifests that came with the package, or those of the checkout that it runs from."""
    packaged = importlib.resources.files("assetlock") / "manifests"
    packaged = packaged / ("install" if name == "manifests" else name)
    if packaged.is_dir():
        return packaged
    checkout = _CHECKOUT / name
    if not checkout.is_dir():
        raise InstallError(f"the manifests are missing: neither {packaged} nor {checkout} exists")
    return checkout


def _ordered(names: Iterable[str]) -> list[str]:
    def rank(name: str) -> tuple[int, str]:
        if name in _FIRST:
            return _FIRST.index(name) - len(_FIRST), name
        return (1 if name in _LAST else 0), name

    return sorted(names, key=rank)


def _title(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
