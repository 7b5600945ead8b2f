"""Assets with room for several, on a real API server: readers, writers, Leases made by hand."""

from __future__ import annotations

from typing import Any

from tests.cluster.conftest import Operated, lease, until

from assetlock.cli.stack import Part
from assetlock.core import names


def further(asset: str, slot: int, user: str = "job") -> dict[str, Any]:
    """A Lease for one of an asset's further slots."""
    body = lease(asset, user)
    body["metadata"]["name"] = names.lease_name(asset, slot)
    return body


def resize(operated: Operated, capacity: int) -> None:
    patch = f'{{"spec": {{"capacity": {capacity}}}}}'
    breaking = ["--as=boss", "--as-group=system:masters", "--as-group=assetlock:break-glass"]
    operated.kubectl("patch", "asset", "vm-1", "--type=merge", f"--patch={patch}", *breaking)


def holders(operated: Operated, asset: str = "vm-1") -> list[str]:
    return [holder["identity"] for holder in operated.get("asset", asset)["status"].get("holders", [])]


def test_readers_share_and_write_and_a_stranger_is_told_of_both(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.held("ann", "alice", mode="Shared")
    operated.held("bo", "bob", mode="Shared")
    assert operated.write("app", "alice").returncode == 0
    assert operated.write("app", "bob", "2").returncode == 0
    refused = operated.write("app", "carol", "3")
    assert "held by alice" in refused.stderr and "bob" in refused.stderr
    assert holders(operated) == ["alice", "bob"]


def test_who_leaves_can_not_write_any_more_and_who_stays_can(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.held("ann", "alice", mode="Shared")
    operated.held("bo", "bob", mode="Shared")
    operated.kubectl("delete", "alk", "ann", user="alice")
    until(lambda: operated.write("app", "alice", "5").returncode != 0, "alice is taken out of the stamp")
    assert operated.write("app", "bob", "6").returncode == 0


def test_a_writer_waits_for_the_readers_and_later_readers_wait_for_the_writer(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.held("reader", "alice", mode="Shared")
    operated.lock("writer", "bob", wait="5m")
    until(lambda: operated.get("alk", "writer").get("status", {}).get("queuePosition") == 1, "in line")
    operated.lock("later", "carol", mode="Shared", wait="5m")
    until(lambda: operated.get("alk", "later").get("status", {}).get("queuePosition") == 2, "in line")
    operated.kubectl("delete", "alk", "reader", user="alice")
    operated.wait("alk/writer", "condition=Acquired")
    assert holders(operated) == ["bob"]
    operated.kubectl("delete", "alk", "writer", user="bob")
    operated.wait("alk/later", "condition=Acquired")


def test_a_writer_has_every_lease_so_that_none_can_be_made_by_hand(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=3)
    operated.held("writer", "bob")
    for slot in (1, 2):
        refused = operated.create(further("vm-1", slot), user="alice", check=False)
        assert "already exists" in refused.stderr


def test_a_lease_made_by_hand_takes_a_slot_and_excludes_a_writer(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.create(further("vm-1", 1, "alice"), user="alice")
    operated.wait("lease/asset-1.vm-1", r"jsonpath={.metadata.annotations.assetlock\.dev/token}=1")
    operated.held("reader", "bob", mode="Shared")
    operated.lock("writer", "carol")
    assert operated.settled("writer")["reason"] == "Locked"
    assert operated.write("app", "alice").returncode == 0


def test_a_slot_that_the_asset_does_not_have_is_refused(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.held("reader", "alice", mode="Shared")
    operated.write("app", "bob")
    refused = operated.create(further("vm-1", 2), user="alice", check=False)
    assert "has no slot 2: its capacity is 2" in refused.stderr
    refused = operated.create(further("vm-1", 64), user="alice", check=False)
    assert "must be named asset.vm-1 (further slots: asset-1.vm-1 to asset-63.vm-1)" in refused.stderr


def test_a_capacity_of_zero_is_refused_and_so_is_one_that_is_too_large(operated: Operated) -> None:
    for capacity in (0, 65):
        body = {"apiVersion": "assetlock.dev/v1alpha1", "kind": "Asset", "metadata": {"name": "vm-1"}}
        refused = operated.create({**body, "spec": {"capacity": capacity}}, check=False)
        assert "spec.capacity" in refused.stderr


def test_capacity_lowered_and_raised_while_locks_are_held(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.held("ann", "alice", mode="Shared")
    operated.held("bo", "bob", mode="Shared")
    resize(operated, 1)
    operated.lock("cy", "carol", mode="Shared", wait="5m")
    until(lambda: operated.get("alk", "cy").get("status", {}).get("queuePosition") == 1, "in line")
    operated.kubectl("delete", "alk", "ann", user="alice")
    until(lambda: holders(operated) == ["bob"], "alice is off")
    assert operated.get("alk", "cy")["status"]["state"] == "Pending"
    resize(operated, 3)
    operated.wait("alk/cy", "condition=Acquired")


def test_who_made_a_lease_beyond_the_capacity_is_told_that_it_holds_nothing(operated: Operated) -> None:
    operated.asset("vm-1", "app", capacity=2)
    operated.stack.kill(Part.ADMISSION)
    try:
        owned = further("vm-1", 3, "alice")
        owned["metadata"]["annotations"] = {"assetlock.dev/owner": "- alice"}
        operated.create(owned, user="alice")
        operated.wait("ast/vm-1", "condition=Overcommitted")
    finally:
        operated.stack.restart(Part.ADMISSION)
    said = "Lease asset-3.vm-1 of alice holds nothing: the asset's capacity is 2, so there is no slot 3"
    condition = next(
        c for c in operated.get("asset", "vm-1")["status"]["conditions"] if c["type"] == "Overcommitted"
    )
    assert said in condition["message"]
    until(lambda: said in operated.kubectl("events", "--for=asset/vm-1").stdout, "an Event tells so too")
    assert "assetlock.dev/token" not in operated.get("lease", "asset-3.vm-1")["metadata"]["annotations"]
    assert operated.write("app", "bob").returncode == 0
    operated.kubectl("delete", "lease", "asset-3.vm-1", user="alice")
    operated.wait("ast/vm-1", "condition=Overcommitted=false")
