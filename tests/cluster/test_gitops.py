"""Diffs, dry runs and syncs against locked objects, as docs/gitops.md says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.conftest import Operated
from tests.cluster.test_docs import ROOT, blocks

SYNC = ("apply", "--server-side", "--force-conflicts", "--field-manager=sync", "-f", "-")


def manifest(value: str) -> str:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}
    return json.dumps({**body, "data": {"value": value}})


@pytest.fixture
def locked(operated: Operated) -> Operated:
    """An asset whose target bob has synced, and that alice has locked since."""
    operated.asset("vm-1")
    operated.kubectl(*SYNC, stdin=manifest("0"), user="bob")
    targets = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}]
    operated.kubectl(
        "patch", "ast", "vm-1", "--type=merge", f"-p={json.dumps({'spec': {'targets': targets}})}"
    )
    operated.held("first", ttl="1h")
    return operated


@pytest.mark.parametrize("dry", [(), ("--dry-run=server",)], ids=["write", "dry-run"])
def test_a_sync_of_an_unchanged_manifest_passes_and_another_is_refused(
    locked: Operated, dry: tuple[str, ...]
) -> None:
    assert locked.kubectl(*SYNC, *dry, stdin=manifest("0"), user="bob").returncode == 0
    refused = locked.kubectl(*SYNC, *dry, stdin=manifest("1"), user="bob", check=False)
    assert (refused.returncode, "is locked through asset vm-1" in refused.stderr) == (1, True)


def test_a_diff_passes_where_nothing_differs_and_fails_where_the_object_is_locked(locked: Operated) -> None:
    diff = ("diff", "--server-side", "--force-conflicts", "--field-manager=sync", "-f", "-")
    assert locked.kubectl(*diff, stdin=manifest("0"), user="bob").returncode == 0
    refused = locked.kubectl(*diff, stdin=manifest("1"), user="bob", check=False)
    assert refused.returncode > 1
    assert "is locked through asset vm-1" in refused.stderr


def test_what_is_not_locked_is_listed_as_the_page_shows(locked: Operated) -> None:
    locked.asset("vm-2")
    locked.kubectl("wait", "ast/vm-2", "--for=jsonpath={.status.lockState}=Unlocked", "--timeout=20s")
    [command] = blocks(ROOT / "docs" / "gitops.md", "sh")
    _, *arguments = command.split()
    assert locked.kubectl(*arguments).stdout.split() == ["asset.assetlock.dev/vm-2"]
