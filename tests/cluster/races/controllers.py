"""Controllers for tests: behind a proxy, or with another core."""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
import urllib.error
import urllib.request

from tests.cluster.conftest import until

from assetlock.cli.stack import HOST, _free_ports
from assetlock.core import names
from assetlock.dev import AddedProcess, ControlPlane

ROOT = pathlib.Path(__file__).parents[3]
THE_OPERATOR = "assetlock.cli.main"
_numbers = itertools.count()


def start(cluster: ControlPlane, *, module: str = THE_OPERATOR, server: str | None = None) -> AddedProcess:
    """Start a controller and return when it leads; it speaks to the API server, or to what stands before that."""
    kubeconfig = cluster.kubeconfig_for_service_account(names.OPERATOR_NAMESPACE, "assetlock-controller")
    number = next(_numbers)
    if server is not None:
        kubeconfig = _pointed_at(server, kubeconfig, cluster.folder / f"controller-{number}.kubeconfig")
    port = next(_free_ports())
    health = f"http://{HOST}:{port}/readyz"
    env = {"ASSETLOCK_HEALTH_HOST": HOST, "ASSETLOCK_HEALTH_PORT": str(port), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", module, "operator", "controller", "--kubeconfig", str(kubeconfig)]
    process = cluster.add_process(f"controller-{number}", argv, env=env, ready_url=health)
    until(lambda: _leads(health), "the controller leads", seconds=60)
    return process


def _pointed_at(server: str, kubeconfig: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = server
    path.write_text(json.dumps(config))
    return path


def _leads(health: str) -> bool:
    try:
        with urllib.request.urlopen(health, timeout=5) as answer:
            return bool(answer.read() == b"leading")
    except (urllib.error.URLError, OSError):
        return False
