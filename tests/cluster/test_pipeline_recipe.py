"""The pipeline of docs/locking.md, pasted and run: it locks, stops, and releases its own lock only."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess

import pytest
from tests.cluster.conftest import Operated, until
from tests.cluster.test_docs import ROOT, blocks


class Pipeline:
    """The recipe in a folder, with a `deploy.sh` beside it."""

    def __init__(self, operated: Operated, folder: pathlib.Path, deploy: str) -> None:
        [recipe] = blocks(ROOT / "docs" / "locking.md", "bash")
        for name, text in {"pipeline.sh": recipe, "deploy.sh": f"#!/bin/bash\n{deploy}\n"}.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_bytes(operated.cluster.kubeconfig.read_bytes())
        self._env = operated.cluster.environment(kubeconfig)
        self._folder = folder
        command = ["kubectl", "config", "set-context", "--current", f"--namespace={operated.namespace}"]
        subprocess.run(command, env=self._env, check=True, capture_output=True)

    def start(self, build: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["./pipeline.sh"],
            cwd=self._folder,
            env={**self._env, "BUILD_ID": build},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def locks(operated: Operated) -> dict[str, str]:
    """The locks that there are, by the run that has them."""
    found = json.loads(operated.kubectl("get", "alk", "-o", "json").stdout)["items"]
    return {lock["spec"].get("holderId", ""): lock["status"].get("state", "") for lock in found}


def test_a_run_locks_works_and_releases(operated: Operated, tmp_path: pathlib.Path) -> None:
    operated.asset("shop-db", "settings")
    run = Pipeline(operated, tmp_path, "kubectl label configmap settings by=pipeline").start("7")
    said, wrong = run.communicate(timeout=90)
    assert run.returncode == 0, wrong
    assert "configmap/settings labeled" in said
    assert locks(operated) == {}


def test_a_run_that_does_not_get_the_lock_stops_and_leaves_the_others_alone(
    operated: Operated, tmp_path: pathlib.Path
) -> None:
    run = Pipeline(operated, tmp_path, "touch deployed").start("8")
    operated.asset("other")
    operated.held("of-another", asset="other", holderId="7")
    until(lambda: "8" in locks(operated), "the run queues")
    operated.kubectl("annotate", "--all", "alk", "assetlock.dev/copy-of=x")  # one way to make a waiter fail
    _, wrong = run.communicate(timeout=90)
    assert run.returncode == 75, wrong
    assert "create a new one" in wrong
    assert not (tmp_path / "deployed").exists()
    assert locks(operated) == {"7": "Held"}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_cancelled_ends_its_work_and_then_its_lock(
    operated: Operated, tmp_path: pathlib.Path, how: signal.Signals
) -> None:
    operated.asset("shop-db", "settings")
    run = Pipeline(
        operated, tmp_path, "trap 'kill %1; touch ended; exit 1' TERM\ntouch begun\nsleep 300 & wait"
    ).start("9")
    until(lambda: (tmp_path / "begun").exists(), "the work has begun", seconds=60)
    os.kill(run.pid, how)
    run.communicate(timeout=90)
    assert run.returncode == 128 + how
    assert (tmp_path / "ended").exists()
    assert locks(operated) == {}
