"""The operator in a local control plane: installed there, and its processes running beside it.

They run as they would in a cluster: with tokens of their own ServiceAccounts, under nothing but the installed
RBAC. When `start` and `Stack.restart` return, locks are granted and the API server consults the webhooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from assetlock.core import names
from assetlock.dev import AddedProcess, ControlPlane, StartFailed
from assetlock.install import install
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport

HOST = "127.0.0.1"
TOKEN_LIFE = "8760h"  # noqa: S105
_PORTS = range(20_000, 32_000)
"""Below those that systems give to outgoing connections, so that none is taken while a process restarts."""

_TIMEOUT = 60.0
_PAUSE = 0.05
_PROBE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": names.lease_name("probe"),
        "namespace": names.OPERATOR_NAMESPACE,
        "labels": {names.ASSET_LABEL: "probe"},
    },
    "spec": {"holderIdentity": "probe", "leaseDurationSeconds": 1},
}


class Part(StrEnum):
    """One of the operator's processes."""

    CONTROLLER = "controller"
    ADMISSION = "admission"
    HTTP = "http"


NEEDED = (Part.CONTROLLER, Part.ADMISSION)
"""What locks need; the HTTP API is served only where it is asked for."""


@dataclass(slots=True)
class Stack:
    """The operator's processes in a control plane; they end with it."""

    cluster: ControlPlane
    ports: Mapping[Part, int]
    env: Mapping[str, str]
    keep_running: bool
    running: dict[Part, AddedProcess] = field(default_factory=dict)

    def url(self, part: Part, path: str) -> str:
        """Where a process answers ``/readyz`` and ``/metrics``."""
        scheme = "https" if part is Part.ADMISSION else "http"
        return f"{scheme}://{HOST}:{self.ports[part]}{path}"

    def kill(self, *parts: Part) -> None:
        """Kill processes with SIGKILL, all of them if none is named."""
        for part in parts or tuple(self.running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.running[part].pid, signal.SIGKILL)

    def restart(self, *parts: Part) -> None:
        """Start processes again, all of them if none is named, and return when they serve."""
        for part in parts or tuple(self.running):
            self.cluster.remove_process(part)
            self._launch(part)
        self.wait_until_serving()

    def wait_until_serving(self) -> None:
        """Return when the controller leads and the API server consults the webhooks."""
        _until(self._leads, "the controller does not lead")
        _until(self._consulted, "the API server does not consult the webhooks")

    def _launch(self, part: Part) -> None:
        account = f"assetlock-{part}"
        kubeconfig = self.cluster.kubeconfig_for_service_account(
            names.OPERATOR_NAMESPACE, account, duration=TOKEN_LIFE
        )
        argv = [sys.executable, "-P", "-m", "assetlock.cli.main", "operator", part]
        argv += ["--kubeconfig", str(kubeconfig)]
        env = dict(self.env)
        if part is not Part.CONTROLLER:
            argv += ["--host", HOST, "--port", str(self.ports[part])]
        else:
            env |= {"ASSETLOCK_HEALTH_HOST": HOST, "ASSETLOCK_HEALTH_PORT": str(self.ports[part])}
        self.running[part] = self.cluster.add_process(
            part, argv, env=env, ready_url=self.url(part, "/readyz"), restart=self.keep_running
        )

    def _leads(self) -> bool:
        try:
            with urllib.request.urlopen(self.url(Part.CONTROLLER, "/readyz"), timeout=5) as answer:  # noqa: S310
                return bool(answer.read() == b"leading")
        except (urllib.error.URLError, OSError):
            return False

    def _consulted(self) -> bool:
        """A Lease would get the marks that only the webhook makes."""
        done = self.cluster.kubectl(
            "create",
            "--dry-run=server",
            "--output=json",
            "--filename=-",
            stdin=json.dumps(_PROBE),
            check=False,
        )
        if done.returncode != 0:
            return False
        return names.ACQUISITION_ANNOTATION in json.loads(done.stdout)["metadata"].get("annotations", {})


def start(
    cluster: ControlPlane,
    *,
    env: Mapping[str, str] | None = None,
    keep_running: bool = False,
    parts: Sequence[Part] = NEEDED,
    report: Callable[[str], None] = lambda _: None,
) -> Stack:
    """Install the operator and start these processes; `env` holds settings (``ASSETLOCK_…``) for them.

    With `keep_running` a process that ends is started again.
    """
    ports = dict(zip(parts, _free_ports(), strict=False))
    stack = Stack(cluster, ports, dict(env or {}), keep_running)
    report("installing the operator")
    asyncio.run(_install(cluster, f"https://{HOST}:{ports[Part.ADMISSION]}"))
    for part in parts:
        report(f"starting the {part} process")
        stack._launch(part)
    stack.wait_until_serving()
    return stack


async def _install(cluster: ControlPlane, webhook_url: str) -> None:
    api = Api(HttpTransport(load_config(cluster.kubeconfig)))
    try:
        await install(api, webhook_url=webhook_url)
    finally:
        await api.close()


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            raise StartFailed(f"{otherwise} after {_TIMEOUT:.0f} s")
        time.sleep(_PAUSE)


def _free_ports() -> Iterator[int]:
    return (port for port in random.sample(_PORTS, 200) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
