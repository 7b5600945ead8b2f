"""The page about the HTTP API works as pasted, and names every setting."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

from assetlock.web.settings import HttpSettings
from tests.web.conftest import World

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "http-api.md"


def test_the_commands_work_as_pasted(world: World, tmp_path: pathlib.Path) -> None:
    world.caller("pipeline", "assetlock-admin")
    (commands,) = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    operated = world.operated
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(operated.cluster.kubeconfig.read_bytes())
    env = operated.cluster.environment(kubeconfig)
    env |= {
        "ASSETLOCK_URL": world.base,
        "NAMESPACE": operated.namespace,
        "PATH": f"{env['PATH']}{os.pathsep}/usr/bin",
    }
    script = f"kubectl config set-context --current --namespace={operated.namespace}\n{commands}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"fencingToken": 1' in done.stdout
    assert "vm.db-prod-01" in done.stdout


def test_every_setting_is_explained() -> None:
    page = PAGE.read_text()
    assert [name for name in HttpSettings.model_fields if f"ASSETLOCK_HTTP_{name.upper()}" not in page] == []
