"""Controllers for tests: behind a proxy, or with another core."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import sys
import urllib.error
import urllib.request

from tests.cluster.conftest import SHORT_ELECTIONS, until

from assetlock.cli.stack import HOST, _free_ports
from assetlock.core import names
from assetlock.dev import AddedProcess, ControlPlane

ROOT = pathlib.Path(__file__).parents[3]
THE_OPERATOR = "assetlock.cli.main"
_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class Controller:
    """One that was started, and where it says whether it leads."""

    process: AddedProcess
    health: str

    def stands_by(self) -> bool:
        return self._says(b"standing by")

    def leads(self) -> bool:
        return self._says(b"leading")

    def _says(self, word: bytes) -> bool:
        try:
            with urllib.request.urlopen(self.health, timeout=5) as answer:
                return bool(answer.read() == word)
        except (urllib.error.URLError, OSError):
            return False


def start(cluster: ControlPlane, *, module: str = THE_OPERATOR, server: str | None = None) -> Controller:
    """Start a controller and return when it leads; it speaks to the API server, or to what stands before that."""
    kubeconfig = cluster.kubeconfig_for_service_account(names.OPERATOR_NAMESPACE, "assetlock-controller")
    number = next(_numbers)
    if server is not None:
        kubeconfig = _pointed_at(server, kubeconfig, cluster.folder / f"controller-{number}.kubeconfig")
    port = next(_free_ports())
    health = f"http://{HOST}:{port}/readyz"
    env = {"ASSETLOCK_HEALTH_HOST": HOST, "ASSETLOCK_HEALTH_PORT": str(port), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", module, "operator", "controller", "--kubeconfig", str(kubeconfig)]
    env |= SHORT_ELECTIONS
    process = cluster.add_process(f"controller-{number}", argv, env=env, ready_url=health)
    controller = Controller(process, health)
    until(controller.leads, "the controller leads", seconds=60)
    return controller


def _pointed_at(server: str, kubeconfig: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = server
    path.write_text(json.dumps(config))
    return path
