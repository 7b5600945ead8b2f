"""Caps, delays, quarantine and hand-over, as users meet them."""

from __future__ import annotations

from tests.cluster.conftest import Operated, lease, until


def may(operated: Operated, user: str, verb: str) -> None:
    """Give a user one more verb on the namespace's assets."""
    operated.kubectl("create", "role", f"t-{verb}", f"--verb={verb}", "--resource=assets.assetlock.dev")
    operated.kubectl("create", "rolebinding", f"t-{verb}", f"--role=t-{verb}", f"--user={user}")


def take_over(operated: Operated, lock: str) -> None:
    """Carol does, as soon as the API server has heard that she may."""

    def done() -> bool:
        return bool(operated.lock("next", "carol", takeOver=lock, check=False).returncode == 0)

    until(done, "carol may delegate")


def why(operated: Operated, name: str) -> str:
    """Why a lock is not held, in a word."""
    conditions = operated.get("alk", name).get("status", {}).get("conditions", [])
    return next((c["reason"] for c in conditions if c["type"] == "Settled"), "")


def test_a_lock_ends_after_its_longest_hold_although_its_holder_keeps_writing(operated: Operated) -> None:
    operated.asset("vm-1", "app", maxHold="3s")
    held = operated.held("first", "alice", ttl="30m")
    assert "maxHold 3s ends it then" in operated.condition("first")["message"]
    assert held["status"]["state"] == "Held"
    operated.write("app", "alice")
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")


def test_nobody_gets_the_asset_or_writes_to_it_during_the_delay(operated: Operated) -> None:
    operated.asset("vm-1", "app", lockDelay="10m")
    operated.held("first", "alice", ttl="1s")
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")
    operated.lock("second", "bob", wait="5m")
    until(lambda: why(operated, "second") == "LockDelay", "the waiter is told of the delay")
    until(lambda: "lock-delay" in operated.write("app", "alice").stderr, "who let it run out is fenced off")
    assert operated.create(lease("vm-1", "bob"), user="bob", check=False).returncode != 0
    assert "bob (second)" not in operated.get("alk", "second")["status"]["waitsFor"]


def test_a_quarantined_asset_is_freed_by_who_may_unlock_and_not_by_its_last_holder(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", "alice", ttl="1s", onExpiry="Quarantine")
    operated.wait("alk/first", "jsonpath={.status.state}=Quarantined")
    operated.lock("second", "bob", wait="5m")
    refused = operated.kubectl("delete", "alk", "first", user="alice", check=False)
    assert "was not released and is quarantined; to free the asset, alice needs the verb" in refused.stderr
    until(lambda: why(operated, "second") == "Quarantined", "the waiter is told why")
    assert "quarantine" in operated.write("app", "bob").stderr
    may(operated, "carol", "unlock")
    until(
        lambda: operated.kubectl("delete", "alk", "first", user="carol", check=False).returncode == 0, "freed"
    )
    operated.wait("alk/second", "condition=Acquired")


def test_a_lock_is_taken_over_by_who_may_delegate(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", "alice", ttl="30m")
    operated.lock("waiting", "bob", wait="5m")
    refused = operated.lock("next", "carol", takeOver="first", check=False)
    assert 'taking over lock first needs the verb "delegate" on asset vm-1' in refused.stderr
    may(operated, "carol", "delegate")
    take_over(operated, "first")
    operated.wait("alk/next", "condition=Acquired")
    assert operated.condition("first", "Finished")["reason"] == "HandedOver"
    assert operated.get("alk", "next")["status"]["fencingToken"] == 2
    assert operated.write("app", "carol").returncode == 0
    assert operated.write("app", "alice", "2").returncode != 0
    assert operated.get("alk", "waiting")["status"]["state"] == "Pending"


def test_a_job_s_lease_becomes_a_person_s_lock_without_a_gap(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.create(lease("vm-1", "alice"), user="alice")
    operated.wait("lease/asset.vm-1", r"jsonpath={.metadata.annotations.assetlock\.dev/token}=1")
    may(operated, "carol", "delegate")
    take_over(operated, "asset.vm-1")
    operated.wait("alk/next", "condition=Acquired")
    assert operated.write("app", "alice").returncode != 0
    assert operated.write("app", "carol").returncode == 0


def test_who_waits_sees_place_and_those_ahead(operated: Operated) -> None:
    operated.asset("vm-1")
    operated.held("first", "alice")
    operated.lock("second", "bob", wait="5m", priority=2)
    operated.lock("third", "carol", wait="5m", priority=1)
    until(
        lambda: operated.get("alk", "third").get("status", {}).get("queuePosition") == 2, "both are in line"
    )
    shown = operated.kubectl("get", "alk", "third", "-o", "wide").stdout
    assert "WAITS FOR" in shown
    assert "alice (first), bob (second)" in shown
    assert "position 2 in the queue" in operated.condition("third")["message"]
