"""mallory prepares a free Lease, for the collector to end whoever takes it over."""

from __future__ import annotations

from typing import Any

from assetlock.cli.stack import Part
from tests.adversary.conftest import Shop
from tests.cluster.conftest import until


def bait(shop: Shop) -> dict[str, Any]:
    shop.does("mallory", "create", "configmap", "bait")
    uid = shop.metadata("cm/bait")["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "bait", "uid": uid}


def free_lease(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "asset.vm", "labels": {"assetlock.dev/asset": "vm"}, **metadata},
        "spec": {"holderIdentity": ""},
    }


def test_a_free_lease_takes_no_owners_and_no_finalizers(shop: Shop) -> None:
    owner = bait(shop)
    assert "no owners" in shop.refused(
        "mallory", "create", "-f", "-", stdin=free_lease(ownerReferences=[owner])
    )
    assert "no owners" in shop.refused("mallory", "create", "-f", "-", stdin=free_lease(finalizers=["a.b/c"]))
    shop.does("mallory", "create", "-f", "-", stdin=free_lease())
    assert not shop.patched("mallory", "lease/asset.vm", {"metadata": {"ownerReferences": [owner]}})


def test_who_takes_a_lease_over_takes_nothing_of_its_former_owner(shop: Shop) -> None:
    """mallory holds it herself first, with an owner of hers, and then lets it go."""
    kept = free_lease(ownerReferences=[bait(shop)], annotations={"assetlock.dev/keep": "true"})
    shop.does(
        "mallory",
        "create",
        "-f",
        "-",
        stdin=kept | {"spec": {"holderIdentity": "m", "leaseDurationSeconds": 60}},
    )
    assert shop.patched("mallory", "lease/asset.vm", {"spec": {"holderIdentity": ""}})
    shop.held("work", "alice", asset="vm", ttl="1h")
    assert not shop.metadata("lease/asset.vm").get("ownerReferences")
    shop.does("mallory", "delete", "cm", "bait")
    until(lambda: shop.tries("alice", "get", "cm", "bait").returncode != 0, "the bait is gone")
    assert not shop.patched("mallory", "cm/app", {"data": {"value": "evil"}})
    assert shop.get("alk", "work")["status"]["state"] == "Held"


def test_the_same_by_hand(shop: Shop) -> None:
    kept = free_lease(ownerReferences=[bait(shop)], annotations={"assetlock.dev/keep": "true"})
    shop.does(
        "mallory",
        "create",
        "-f",
        "-",
        stdin=kept | {"spec": {"holderIdentity": "m", "leaseDurationSeconds": 60}},
    )
    assert shop.patched("mallory", "lease/asset.vm", {"spec": {"holderIdentity": ""}})
    taken = {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 600}}
    until(lambda: shop.patched("alice", "lease/asset.vm", taken), "alice has it")
    assert not shop.metadata("lease/asset.vm").get("ownerReferences")


def test_a_stack_without_admission_lets_no_owner_onto_a_free_lease_either(shop: Shop) -> None:
    shop.stack.kill(Part.ADMISSION)
    try:
        shop.refused("mallory", "create", "-f", "-", stdin=free_lease(ownerReferences=[bait(shop)]))
    finally:
        shop.stack.restart(Part.ADMISSION)
