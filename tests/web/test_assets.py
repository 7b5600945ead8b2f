"""Assets by HTTP: lists, records, tokens."""

from __future__ import annotations

from typing import Any

from tests.cluster.conftest import until
from tests.web.conftest import Caller, World


def names(caller: Caller, query: str = "") -> list[str]:
    body: dict[str, Any] = caller.call("GET", f"assets{query}").body
    return [item["name"] for item in body["items"]]


def test_assets_are_listed_by_name_filtered_and_page_by_page(world: World) -> None:
    for name, kind in (("a1", "VM"), ("a2", "Database"), ("a3", "VM")):
        world.operated.asset(name, type=kind, metadata={"owner": name})
    alice = world.caller("alice")
    until(lambda: names(alice) == ["a1", "a2", "a3"], "all are seen")
    assert names(alice, "?type=VM") == ["a1", "a3"]
    assert names(alice, "?q=data") == ["a2"]
    assert names(alice, "?metadata=owner=a3") == ["a3"]
    alice.call("POST", "assets/a3/lock", {"ttl": "1m"})
    until(lambda: names(alice, "?lockState=Locked") == ["a3"], "the lock is seen")
    first = alice.call("GET", "assets?limit=2").body
    assert [item["name"] for item in first["items"]] == ["a1", "a2"]
    assert first["total"] == 3
    assert names(alice, f"?limit=2&cursor={first['next']}") == ["a3"]
    assert alice.call("GET", "assets?cursor=%25").status == 422
    assert alice.call("GET", "assets/search?page=2&size=2").body["results"][0]["id"] == "a3"


def test_a_pipeline_records_what_it_did_and_others_can_not_while_it_holds(world: World) -> None:
    alice, bob = (world.caller(name, "assetlock-admin") for name in ("alice", "bob"))
    record = {"type": "VM", "displayName": "The database", "metadata": {"kernel": "6.1"}}
    assert alice.call("PUT", "assets/db", record).status == 201
    assert alice.call("POST", "assets/db/lock", {"ttl": "10m"}).status == 200
    changed = alice.call("PUT", "assets/db", {"metadata": {"kernel": "6.2"}})
    assert (changed.status, changed.body["metadata"]) == (200, {"kernel": "6.2"})
    assert changed.body["displayName"] == "The database"
    refused = bob.call("PUT", "assets/db", {"metadata": {"kernel": "1.0"}})
    assert refused.status == 423
    warned = bob.call("PUT", "assets/db?onConflict=warn", {"metadata": {"kernel": "1.0"}})
    assert (warned.status, warned.body["metadata"]) == (200, {"kernel": "6.2"})
    assert ":alice" in warned.body["warnings"][0]


def test_a_token_is_current_only_while_its_holder_holds(world: World) -> None:
    world.operated.asset()
    alice = world.caller("alice")
    held = alice.call("POST", "assets/vm-1/lock", {"ttl": "10m"}).body
    verify = {"token": held["fencingToken"]}
    assert alice.call("POST", "assets/vm-1/verify", verify).body["current"] is True
    assert (
        alice.call("POST", "assets/vm-1/verify", {"token": held["fencingToken"] + 1}).body["current"] is False
    )
    alice.call("DELETE", f"locks/{held['lockId']}")
    until(
        lambda: not alice.call("POST", "assets/vm-1/verify", verify).body["current"],
        "the token is not current",
    )


def test_what_does_not_exist_is_not_found(world: World) -> None:
    alice = world.caller("alice")
    for method, path in (("GET", "assets/none"), ("POST", "assets/none/lock"), ("GET", "locks/none")):
        assert alice.call(method, path).status == 404
    assert alice.raw("GET", "/nothing").status == 404
    assert alice.call("PUT", "locks/none", {}).status == 410
