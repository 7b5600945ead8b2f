"""What comes back from a backup, or from `kubectl get -o yaml`, is a copy: it locks nothing and asks for nothing."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.conftest import Operated, document

SERVERS_OWN = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
)


def backup(operated: Operated, kind: str, name: str) -> dict[str, Any]:
    """An object as a backup tool creates it again: without what the server decides, and without status."""
    found = operated.get(kind, name)
    metadata = {key: value for key, value in found["metadata"].items() if key not in SERVERS_OWN}
    return {**{key: value for key, value in found.items() if key != "status"}, "metadata": metadata}


def test_the_lease_of_an_assetlock_locks_nothing_when_it_is_restored(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1h")
    kept = backup(operated, "lease", "asset.vm-1")
    operated.kubectl("delete", "alk", "first", user="alice")
    operated.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=20s")
    restored = operated.create(kept)
    assert "this Lease is a copy of that of AssetLock first" in restored.stderr
    operated.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=20s")
    operated.held("second", "bob")


def test_an_assetlock_asks_for_nothing_when_it_is_restored(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1s", wait="1h")
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")
    kept = backup(operated, "alk", "first")
    operated.kubectl("delete", "alk", "first", user="alice")
    restored = operated.create(kept)
    assert "it locks nothing" in restored.stderr
    assert operated.settled("first")["reason"] == "Restored"
    assert operated.get("alk", "first")["status"]["state"] == "Failed"


def test_a_lock_that_is_made_from_a_manifest_again_is_a_new_one(operated: Operated) -> None:
    operated.asset("vm-1")
    manifest = json.dumps(document("AssetLock", "first", {"assetName": "vm-1"}))
    for _ in range(2):
        operated.kubectl("apply", "-f", "-", stdin=manifest, user="alice")
        operated.wait("alk/first", "condition=Acquired")
        operated.kubectl("delete", "alk", "first", user="alice")


def test_a_whole_namespace_comes_back_unlocked_with_its_assets(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1h")
    objects = [("ast", "vm-1"), ("configmap", "app"), ("lease", "asset.vm-1"), ("alk", "first")]
    kept = [backup(operated, *each) for each in objects]
    other = operated.namespace + "-restored"
    operated.cluster.kubectl("create", "namespace", other)
    twin = Operated(operated.cluster, operated.stack, other)
    for each in kept:
        each["metadata"]["namespace"] = other
        twin.create(each)
    assert twin.settled("first")["reason"] == "Restored"
    twin.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=20s")
    assert twin.write("app", "bob").returncode == 0
    operated.cluster.kubectl("delete", "namespace", other, "--wait=false")
