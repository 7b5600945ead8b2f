"""Locks by HTTP, as a system without a Kubernetes client uses them."""

from __future__ import annotations

import concurrent.futures
import time

from tests.cluster.conftest import until
from tests.web.conftest import World


def test_a_lock_by_http_keeps_others_from_writing_and_its_release_lets_them(world: World) -> None:
    world.operated.asset("vm.db-1", "app")
    alice = world.caller("alice", "assetlock-user", "edit")
    locked = alice.call("POST", "assets/vm.db-1/lock", {"ttl": "PT2H", "reason": "patching"})
    assert locked.status == 200
    assert locked.body["fencingToken"] >= 1
    assert locked.body["username"] == f"system:serviceaccount:{world.operated.namespace}:alice"
    assert locked.body["ownerType"] == "WORKLOAD"
    assert locked.body["lockedUntil"] > locked.body["acquiredAt"]
    assert world.operated.write("app", "bob").returncode != 0
    assert alice.call("DELETE", f"locks/{locked.body['lockId']}").status == 204
    until(lambda: world.operated.write("app", "bob").returncode == 0, "bob may write again")
    assert alice.call("DELETE", f"locks/{locked.body['lockId']}").status == 204


def test_the_second_is_told_who_holds_it_since_and_until_when(world: World) -> None:
    world.operated.asset()
    alice, bob = world.caller("alice"), world.caller("bob")
    assert alice.call("POST", "assets/vm-1/lock", {"ttl": "10m", "reason": "patching"}).status == 200
    refused = bob.call("POST", "assets/vm-1/lock", {"ttl": "10m"})
    assert refused.status == 423
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.body["type"] == "/problems/locked"
    (holder,) = refused.body["holders"]
    assert holder["identity"].endswith(":alice")
    assert holder["reason"] == "patching"
    assert refused.body["since"] < refused.body["until"]
    explained = bob.raw("GET", refused.body["type"])
    assert explained.status == 200
    assert "Retry-After" in explained.body


def test_who_waits_keeps_the_place_when_the_connection_is_over(world: World) -> None:
    world.operated.asset()
    alice, bob = world.caller("alice"), world.caller("bob")
    held = alice.call("POST", "assets/vm-1/lock", {"ttl": "10m"}).body
    waiting = bob.call(
        "POST", "assets/vm-1/lock", {"ttl": "10m", "wait": "10m"}, headers={"Prefer": "wait=1"}
    )
    assert waiting.status == 202
    assert waiting.body["state"] == "Pending"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        polled = pool.submit(bob.raw, "GET", waiting.headers["Location"], headers={"Prefer": "wait=20"})
        assert alice.call("DELETE", f"locks/{held['lockId']}").status == 204
        answer = polled.result()
    if answer.status == 202:
        answer = bob.raw("GET", waiting.headers["Location"], headers={"Prefer": "wait=20"})
    assert (answer.status, answer.body["state"]) == (200, "Held")
    assert answer.body["fencingToken"] > held["fencingToken"]


def test_a_request_that_is_sent_twice_with_one_key_locks_once(world: World) -> None:
    world.operated.asset()
    alice = world.caller("alice")
    key = {"Idempotency-Key": "build-7"}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda _: alice.call("POST", "assets/vm-1/lock", {"ttl": "10m"}, headers=key), range(4))
        )
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["lockId"] for answer in answers}) == 1
    assert len({answer.body["fencingToken"] for answer in answers}) == 1
    other = alice.call("POST", "assets/vm-1/lock", {"ttl": "20m"}, headers=key)
    assert other.status == 422


def test_the_same_run_again_extends_and_another_run_of_the_same_user_is_refused(world: World) -> None:
    world.operated.asset()
    alice = world.caller("alice")
    first = alice.call("POST", "assets/vm-1/lock", {"ttl": "5m", "executionId": "run-1"}).body
    time.sleep(1.1)  # Times have whole seconds.
    again = alice.call("POST", "assets/vm-1/lock", {"ttl": "5m", "executionId": "run-1"}).body
    assert again["lockId"] == first["lockId"]
    until(
        lambda: alice.call("GET", f"locks/{first['lockId']}").body["lockedUntil"] > first["lockedUntil"],
        "the term begins again",
    )
    other = alice.call("POST", "assets/vm-1/lock", {"ttl": "5m", "executionId": "run-2"})
    assert other.status == 423
    assert first["lockId"] in other.body["detail"]
    assert alice.call("DELETE", "assets/vm-1/lock?executionId=run-2").status == 204
    assert alice.call("GET", f"locks/{first['lockId']}").body["state"] == "Held"
    assert alice.call("DELETE", "assets/vm-1/lock?executionId=run-1").status == 204


def test_a_clean_up_after_the_end_never_evicts_the_next_holder(world: World) -> None:
    world.operated.asset()
    alice, bob = world.caller("alice"), world.caller("bob")
    lost = alice.call("POST", "assets/vm-1/lock", {"ttl": "1s"}).body["lockId"]
    next_one = bob.call(
        "POST", "assets/vm-1/lock", {"ttl": "10m", "wait": "1m"}, headers={"Prefer": "wait=3"}
    )
    if next_one.status == 202:
        next_one = bob.raw("GET", next_one.headers["Location"], headers={"Prefer": "wait=20"})
    assert next_one.body["state"] == "Held"
    assert alice.call("PUT", f"locks/{lost}", {"ttl": "10m"}).status == 410
    assert alice.call("DELETE", f"locks/{lost}").status == 204
    assert alice.call("DELETE", "assets/vm-1/lock").status == 403
    assert bob.call("GET", f"locks/{next_one.body['lockId']}").body["state"] == "Held"


def test_a_lock_of_others_is_ended_only_with_force_and_the_verb_unlock(world: World) -> None:
    world.operated.asset()
    alice, bob = world.caller("alice"), world.caller("bob")
    admin = world.caller("boss", "assetlock-admin", "edit")
    held = alice.call("POST", "assets/vm-1/lock", {"ttl": "10m"}).body["lockId"]
    assert bob.call("DELETE", f"locks/{held}").status in (403, 423)
    assert bob.call("DELETE", "assets/vm-1/lock?force=true").status == 403
    assert admin.call("DELETE", "assets/vm-1/lock?force=true").status == 204
    until(lambda: alice.call("GET", f"locks/{held}").body["state"] == "Revoked", "the lock is revoked")


def test_several_assets_are_locked_together_or_not_at_all(world: World) -> None:
    for name in ("web", "db"):
        world.operated.asset(name)
    alice, bob = world.caller("alice"), world.caller("bob")
    both = alice.call("POST", "locks", {"assets": ["web", "db"], "ttl": "10m"})
    assert both.status == 200
    assert set(both.body["fencingTokens"]) == {"web", "db"}
    assert bob.call("POST", "assets/web/lock", {"ttl": "1m"}).status == 423
    assert (
        alice.call("POST", "locks", {"assets": ["web"], "selector": {"matchLabels": {"a": "b"}}}).status
        == 422
    )
