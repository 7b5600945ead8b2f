"""The commands on a control plane that runs, and when none does."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from assetlock.dev import provide
from tests.dev.conftest import Run

Dev = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """`assetlock dev`, with a control plane up."""
    assets = provide(lambda _: None).apiserver.parent
    state = tmp_path_factory.mktemp("state")
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "KUBEBUILDER_ASSETS": str(assets)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "assetlock.cli.main", "dev", *arguments]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    started = run("up")
    assert started.returncode == 0, started.stderr
    yield run
    run("down")


def in_a_shell(script: str) -> str:
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_what_env_prints_lets_a_shell_use_kubectl(dev: Dev) -> None:
    assert in_a_shell(dev("env").stdout + "kubectl get namespace default -oname") == "namespace/default\n"


def test_kubeconfig_prints_a_path_that_authenticates_as_the_user(dev: Dev) -> None:
    path = dev("kubeconfig", "--user", "alice", "--group", "qa", "--group", "dev").stdout.strip()
    whoami = f"kubectl --kubeconfig={path} auth whoami -ojsonpath='{{.status.userInfo.username}} "
    answer = in_a_shell(dev("env").stdout + whoami + "{.status.userInfo.groups}'")
    assert answer == 'alice ["qa","dev","system:authenticated"]'


def test_status_shows_each_process_with_its_memory(dev: Dev) -> None:
    lines = dev("status").stdout.splitlines()
    assert lines[0].startswith("default: ready at https://127.0.0.1:")
    rows = {line.split()[0]: line.split() for line in lines[2:]}
    assert list(rows) == ["etcd", "kube-apiserver", "kube-controller-manager", "supervisor"]
    for name, pid, _port, memory, unit in rows.values():
        assert name.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        assert (int(memory) > 5, unit) == (True, "MB")


def test_up_again_changes_nothing(dev: Dev) -> None:
    before = dev("status").stdout.split()[:4]
    again = dev("up")
    assert (again.returncode, dev("status").stdout.split()[:4]) == (0, before)
    assert "runs already" in again.stdout


@pytest.mark.parametrize("name", ["", "..", "Upper", "a/b", "x" * 41])
def test_a_name_that_can_not_be_a_folder_is_a_usage_error(assetlock: Run, name: str) -> None:
    refused = assetlock("dev", "up", "--name", name)
    assert refused.returncode == os.EX_USAGE
    assert "can't name a control plane" in refused.stderr


@pytest.mark.parametrize("command", [("env",), ("kubeconfig", "--user", "alice"), ("status",)])
def test_what_needs_a_running_one_says_so_when_there_is_none(assetlock: Run, command: tuple[str]) -> None:
    refused = assetlock("dev", *command)
    assert (refused.returncode, refused.stdout) == (os.EX_UNAVAILABLE, "")
    assert refused.stderr.startswith("assetlock: no control plane")


@pytest.mark.parametrize("arguments", [("nonsense",), ("dev", "up", "--banana"), ("dev", "kubeconfig")])
def test_what_can_not_be_understood_is_a_usage_error(assetlock: Run, arguments: tuple[str]) -> None:
    refused = assetlock(*arguments)
    assert refused.returncode == os.EX_USAGE
    assert refused.stderr.startswith("Usage: assetlock")


def test_help_loads_no_command(assetlock: Run) -> None:
    script = "import sys; from assetlock.cli import main; main.run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for heavy in ("pydantic", "aiohttp", "kubernetes", "kopf", "cryptography", "assetlock.dev"):
        assert f"'{heavy}'" not in done.stdout
