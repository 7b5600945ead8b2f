"""Locks as users see them, with kubectl, on a real API server and with the whole operator."""

from __future__ import annotations

import json
import time

from tests.cluster.conftest import BREAK_GLASS, Operated, document, lease, until


def test_a_lock_is_acquired_and_shows_holder_token_and_expiry(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    lock = operated.held("first", ttl="PT10M", reason="patching")
    assert lock["spec"]["holder"] == {"username": "alice"}
    assert lock["status"]["state"] == "Held"
    assert lock["status"]["fencingToken"] == 1
    asset = operated.get("ast", "vm-1")
    [holder] = asset["status"]["holders"]
    assert (holder["identity"], holder["lock"], holder["reason"]) == ("alice", "first", "patching")
    assert holder["expireTime"] == lock["status"]["expireTime"]
    shown = operated.kubectl("get", "assets", "--field-selector=status.lockState=Locked").stdout
    assert "alice" in shown


def test_strangers_are_refused_with_423_and_told_who_since_when_until_when_and_what_to_do(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    lock = operated.held("first", ttl="10m", reason="patching the kernel")
    refused = operated.write("app", "bob")
    assert refused.returncode == 1
    for said in (
        "Locked",
        "alice",
        lock["status"]["acquireTime"],
        lock["status"]["expireTime"],
        "patching the kernel",
    ):
        assert said in refused.stderr, refused.stderr
    raw = operated.kubectl(
        "patch",
        "configmap",
        "app",
        "--type=merge",
        '--patch={"data":{"value":"1"}}',
        "-v=8",
        user="bob",
        check=False,
    )
    assert "423" in raw.stderr
    assert operated.get("configmap", "app")["data"]["value"] == "0"


def test_the_holder_writes_and_strangers_write_again_after_the_release(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.write("app", "alice", "mine", check=True)
    operated.kubectl("delete", "alk", "first", user="alice")
    until(lambda: operated.unfenced("app"), "the fence comes down")
    written = operated.write("app", "bob", "theirs")
    assert written.returncode == 0, written.stderr


def test_a_held_asset_fails_a_lock_at_once_that_does_not_wait(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.lock("second", "bob")
    settled = operated.settled("second")
    assert settled["reason"] == "Locked"
    assert "held by alice (first)" in settled["message"]
    assert operated.get("alk", "second")["status"]["state"] == "Failed"


def test_waiters_are_granted_in_order_the_moment_the_one_before_releases(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    for name, user, priority in (("second", "bob", 2), ("third", "carol", 1), ("urgent", "carol", 9)):
        operated.lock(name, user, wait="5m", priority=priority)
    operated.kubectl("wait", "alk/second", "--for=jsonpath={.status.queuePosition}=2", "--timeout=10s")
    operated.kubectl("wait", "alk/third", "--for=jsonpath={.status.queuePosition}=3", "--timeout=10s")
    tokens = []
    for name, following in (("first", "urgent"), ("urgent", "second"), ("second", "third")):
        operated.kubectl("delete", "alk", name)
        operated.wait(f"alk/{following}", "condition=Acquired")
        tokens.append(operated.get("alk", following)["status"]["fencingToken"])
    assert tokens == [2, 3, 4]
    assert (
        "alice" in operated.write("app", "alice").stderr or "carol" in operated.write("app", "alice").stderr
    )


def test_a_former_holder_is_refused_like_anybody_else(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="2s", extendOnWrite=False)
    operated.lock("second", "bob", wait="1m")
    operated.wait("alk/second", "condition=Acquired")
    assert operated.get("alk", "first")["status"]["state"] == "Expired"
    refused = operated.write("app", "alice")
    assert "bob" in refused.stderr
    assert operated.write("app", "bob").returncode == 0


def test_an_expired_lock_is_granted_on_within_a_second_of_its_deadline(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="3s")
    renewed = operated.get("lease", "asset.vm-1")["spec"]["renewTime"]
    operated.lock("second", "bob", wait="1m")
    operated.wait("alk/second", "condition=Acquired")
    taken = operated.get("lease", "asset.vm-1")["spec"]["acquireTime"]
    assert 4.0 <= _seconds(taken) - _seconds(renewed) <= 5.0


def test_the_holders_writes_extend_the_lock_and_are_recorded(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    lock = operated.held("first", ttl="1h")
    time.sleep(1.1)  # expiry is shown in whole seconds
    operated.write("app", "alice", check=True)
    operated.kubectl("wait", "ast/vm-1", "--for=jsonpath={.status.lastPatchedBy}=alice", "--timeout=10s")
    before = lock["status"]["expireTime"]
    deadline = time.monotonic() + 10
    while operated.get("alk", "first")["status"]["expireTime"] == before:
        assert time.monotonic() < deadline, "never extended"


def test_a_job_takes_a_lock_by_creating_a_lease_and_a_second_create_is_refused(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.create(lease("vm-1", "alice"), user="alice")
    operated.kubectl(
        "wait",
        "lease/asset.vm-1",
        r"--for=jsonpath={.metadata.annotations.assetlock\.dev/token}=1",
        "--timeout=10s",
    )
    again = operated.create(lease("vm-1", "bob"), user="bob", check=False)
    assert "AlreadyExists" in again.stderr or "423" in again.stderr or "Locked" in again.stderr
    assert "alice" in operated.write("app", "bob").stderr
    assert operated.write("app", "alice").returncode == 0
    operated.lock("second", "bob")
    assert operated.settled("second")["reason"] == "Locked"
    operated.kubectl("delete", "lease", "asset.vm-1", user="alice")
    operated.kubectl("wait", "ast/vm-1", "--for=jsonpath={.status.lockState}=Unlocked", "--timeout=10s")
    operated.held("third", "bob")


def test_a_foreign_lease_can_not_be_overwritten_or_deleted(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.create(lease("vm-1", "alice"), user="alice")
    patch = json.dumps({"spec": {"holderIdentity": "bob"}})
    assert operated.kubectl(
        "patch", "lease", "asset.vm-1", "--type=merge", f"-p={patch}", user="bob", check=False
    ).returncode
    assert operated.kubectl("delete", "lease", "asset.vm-1", user="bob", check=False).returncode
    assert operated.get("lease", "asset.vm-1")["spec"]["holderIdentity"] == "alice"


def test_a_lease_deleted_by_its_owner_and_made_again_gets_a_larger_token(operated: Operated) -> None:
    operated.asset("vm-1")
    tokens = []
    for _ in range(3):
        operated.create(lease("vm-1", "alice"), user="alice")
        operated.kubectl(
            "wait",
            "lease/asset.vm-1",
            r"--for=jsonpath={.metadata.annotations.assetlock\.dev/token}",
            "--timeout=10s",
        )
        tokens.append(
            int(operated.get("lease", "asset.vm-1")["metadata"]["annotations"]["assetlock.dev/token"])
        )
        operated.kubectl("delete", "lease", "asset.vm-1", user="alice")
    assert tokens == [1, 2, 3]


def test_whom_the_asset_exempts_may_update_but_not_delete_its_targets(operated: Operated) -> None:
    operated.asset("vm-1", "app", exempt=["carol"])
    operated.held("first")
    updated = operated.write("app", "carol")
    assert updated.returncode == 0, updated.stderr
    deleted = operated.kubectl("delete", "configmap", "app", user="carol", check=False)
    assert "alice" in deleted.stderr
    assert operated.write("app", "bob", "2").returncode == 1


def test_only_the_holder_may_release_a_lock(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    refused = operated.kubectl("delete", "alk", "first", user="bob", check=False)
    assert refused.returncode == 1
    assert "alice" in refused.stderr
    operated.kubectl("delete", "alk", "first", user="alice")


def test_a_lock_tells_its_story_in_events(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1s", extendOnWrite=False)
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")
    deadline = time.monotonic() + 10
    reasons: set[str] = set()
    while not {"Acquired", "Locked", "Expired", "Unlocked"} <= reasons:
        assert time.monotonic() < deadline, reasons
        events = json.loads(operated.kubectl("get", "events.v1.events.k8s.io", "-o", "json").stdout)
        reasons = {event["reason"] for event in events["items"]}


def test_locks_of_the_same_name_in_two_namespaces_have_nothing_to_do_with_each_other(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    other = operated.namespace + "-other"
    operated.cluster.kubectl("create", "namespace", other)
    twin = Operated(operated.cluster, operated.stack, other)
    twin.asset("vm-1", "app")
    twin.held("first", "bob")
    assert twin.write("app", "bob").returncode == 0
    assert operated.write("app", "bob").returncode == 1
    operated.cluster.kubectl("delete", "namespace", other, "--wait=false", user="root", groups=BREAK_GLASS)


def test_a_finished_lock_is_deleted_when_it_asks_for_that(operated: Operated) -> None:
    operated.asset("vm-1")
    operated.held("first", ttl="1s", ttlSecondsAfterFinished=1)
    operated.kubectl("wait", "alk/first", "--for=delete", "--timeout=15s")


def test_a_changed_ttl_extends_and_other_fields_stay(operated: Operated) -> None:
    operated.asset("vm-1")
    before = operated.held("first", ttl="1m")["status"]["expireTime"]
    operated.kubectl("patch", "alk", "first", "--type=merge", '-p={"spec":{"ttl":"1h"}}', user="alice")
    deadline = time.monotonic() + 10
    while operated.get("alk", "first")["status"]["expireTime"] <= before:
        assert time.monotonic() < deadline, "never extended"
    refused = operated.kubectl(
        "patch", "alk", "first", "--type=merge", '-p={"spec":{"wait":"5m"}}', user="alice", check=False
    )
    assert "spec.wait" in refused.stderr
    assert "only ttl, renewTime, reason and priority can" in refused.stderr


def test_applying_the_same_lock_twice_changes_nothing(operated: Operated) -> None:
    operated.asset("vm-1")
    text = json.dumps(document("AssetLock", "first", {"assetName": "vm-1", "ttl": "10m"}))
    operated.kubectl("apply", "-f", "-", stdin=text, user="alice")
    operated.wait("alk/first", "condition=Acquired")
    assert "unchanged" in operated.kubectl("apply", "-f", "-", stdin=text, user="alice").stdout


def _seconds(stamp: str) -> float:
    import datetime

    return datetime.datetime.fromisoformat(stamp).timestamp()
