"""A release of the chart in a real control plane, its pods running on the stand-in for a node."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from charts.tools import helm
from tests.chart import node
from tests.cluster.conftest import Operated, grant_rights, until

from assetlock.dev import ControlPlane

NAMESPACE = "locks"
SHOP = "shop"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@dataclass
class Release:
    """Helm, the cluster, and a namespace of somebody who locks things there."""

    cluster: ControlPlane
    node: node.Node
    values: pathlib.Path
    folder: pathlib.Path
    shop: Operated

    def helm(self, *arguments: str) -> str:
        """Run Helm against the cluster."""
        homes = {f"HELM_{name}_HOME": str(self.folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        env = {**self.cluster.environment(), **homes}
        return helm.run(*arguments, f"--namespace={NAMESPACE}", env=env).stdout

    def upgrade(self, *arguments: str) -> str:
        """Install or upgrade, and wait as Helm does until every pod is ready."""
        command = ("upgrade", "--install", helm.RELEASE, str(helm.CHART), f"--values={self.values}")
        try:
            return self.helm(*command, "--wait", "--timeout=240s", *arguments)
        except helm.HelmFailed as failure:
            pods = ("get", "pods", "--output=wide", f"--namespace={NAMESPACE}")
            failure.add_note(self.cluster.kubectl(*pods).stdout + self.node.logs())
            raise

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """An object of the release."""
        command = ("get", kind, name, f"--namespace={NAMESPACE}", "--output=json")
        found: dict[str, Any] = json.loads(self.cluster.kubectl(*command).stdout)
        return found


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("release")
    service, webhooks, health, http = _free_ports(4)
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(_values(service, webhooks, health, http)))
    with ControlPlane() as cluster:
        for namespace in (NAMESPACE, SHOP):
            cluster.kubectl("create", "namespace", namespace)
        cluster.kubectl("label", "namespace", NAMESPACE, RESTRICTED)
        with node.running(cluster, NAMESPACE, service, webhooks) as running:
            shop = Operated(cluster, None, SHOP)  # type: ignore[arg-type]
            made = Release(cluster, running, values, folder, shop)
            _install(made)
            grant_rights(cluster)
            yield made


def _install(release: Release) -> None:
    """Install while somebody makes the API server reach the Service here: there is no network of pods."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        installing = threads.submit(release.upgrade)
        service = ("service", "assetlock-admission", f"--namespace={NAMESPACE}")
        until(
            lambda: installing.done() or bool(release.cluster.kubectl("get", *service, check=False).stdout),
            "there is a Service",
            seconds=60,
        )
        patch = {"spec": {"type": "ExternalName", "externalName": "localhost"}}
        release.cluster.kubectl("patch", *service, "--type=merge", f"--patch={json.dumps(patch)}")
        installing.result()


def _values(service: int, webhooks: int, health: int, http: int) -> dict[str, Any]:
    """Addresses and ports that are free on this machine; a short drain."""
    address = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    common = {"host": "$(POD_IP)", "extraEnv": address}
    return {
        "controller": {**common, "port": health},
        "admission": {**common, "port": webhooks, "service": {"port": service}, "drainSeconds": 5},
        "http": {"extraArgs": ["--host=$(POD_IP)"], "extraEnv": address, "port": http, "replicas": 1},
    }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
