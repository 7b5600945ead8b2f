"""A local control plane with the operator in it."""

from __future__ import annotations

import os
import subprocess

from tests.dev.conftest import Run

LOCKED = """
apiVersion: assetlock.dev/v1alpha1
kind: Asset
metadata: {name: vm-1, namespace: default}
spec: {type: VM}
---
apiVersion: assetlock.dev/v1alpha1
kind: AssetLock
metadata: {name: patch, namespace: default}
spec: {assetName: vm-1, ttl: 5m}
"""


def test_up_with_the_operator_returns_when_locks_are_granted(assetlock: Run) -> None:
    up = assetlock("dev", "up", "--operator")
    assert up.returncode == 0, up.stderr
    status = assetlock("dev", "status").stdout
    assert {"controller", "admission"} < {line.split()[0] for line in status.splitlines()}
    wait = "kubectl wait --for=condition=Acquired --timeout=20s -oname assetlock/patch"
    script = f"{assetlock('dev', 'env').stdout}\nkubectl create -f- >/dev/null\n{wait}"
    shell = subprocess.run(["sh", "-ec", script], input=LOCKED, capture_output=True, text=True, check=False)
    assert shell.stdout == "assetlock.assetlock.dev/patch\n", shell.stderr


def test_asking_for_the_operator_where_it_does_not_run_says_what_to_do(assetlock: Run) -> None:
    assetlock("dev", "up", "--name", "bare")
    refused = assetlock("dev", "up", "--name", "bare", "--operator")
    assert refused.returncode == os.EX_UNAVAILABLE
    assert "assetlock dev down --name bare" in refused.stderr
