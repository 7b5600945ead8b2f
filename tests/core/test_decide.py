"""The decision, one story at a time."""

from __future__ import annotations

import datetime

import pytest

from assetlock.core import decision as d
from assetlock.core import names
from assetlock.core.decide import decide
from assetlock.model.times import format_micro_time, format_time
from tests.core.world import Stale, World


@pytest.fixture
def world() -> World:
    world = World()
    world.make_asset("app", "db")
    world.make_target("app")
    world.make_target("db")
    world.settle()
    return world


def kinds(writes: list[d.Write]) -> list[str]:
    return [type(write).__name__ for write in writes]


def test_a_grant_claims_records_stamps_and_only_then_announces(world: World) -> None:
    world.ask("first", "alice")
    writes = world.settle()
    assert kinds(writes) == [
        "CreateLease",
        "WriteAssetStatus",
        "PatchTarget",
        "PatchTarget",
        "WriteLockStatus",
    ]
    assert world.state("first") == "Held"
    assert world.stamped_users("app") == ["alice"]


def test_stamps_that_somebody_planted_before_the_lock_go_with_the_first_stamp_of_ours(world: World) -> None:
    target = world.targets["app"]["metadata"]
    others = names.stamp_key("evil", "elsewhere")
    own = names.stamp_key("vm-1", "team-a")
    target["annotations"] |= {others: f"{target['uid']}\n9 - mallory", own: f"{target['uid']}\n999 - mallory"}
    world.ask("first", "alice")
    world.settle()
    assert world.stamped_users("app") == ["alice"]
    assert others not in target["annotations"]
    assert world.locks["first"]["status"]["fencingToken"] == 1


def test_a_stamp_of_another_asset_on_a_fenced_object_stays(world: World) -> None:
    target = world.targets["app"]["metadata"]
    others = names.stamp_key("db", "elsewhere")
    target["labels"][names.FENCED_LABEL] = "true"
    target["annotations"][others] = f"{target['uid']}\n9 - bob"
    world.ask("first", "alice")
    world.settle()
    assert others in target["annotations"]
    world.withdraw("first")
    world.settle()
    assert target["labels"] == {names.FENCED_LABEL: "true"}
    assert list(target["annotations"]) == [others]


def test_a_lock_on_what_can_not_be_fenced_is_had_where_advice_is_enough(world: World) -> None:
    world.make_asset("app", "db", enforcement="Advisory")
    world.problems["db"] = "ConfigMap db can't be fenced"
    world.ask("first", "alice")
    world.settle()
    assert world.state("first") == "Held"
    conditions = {c["type"]: c for c in (world.asset or {})["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    assert (conditions["Fenced"]["status"], conditions["Fenced"]["reason"]) == ("False", "NotFenceable")


def test_an_end_frees_the_lease_before_the_stamps_go(world: World) -> None:
    world.ask("first")
    world.settle()
    world.withdraw("first")
    assert kinds(world.settle()) == ["DeleteLease", "WriteAssetStatus", "PatchTarget", "PatchTarget"]
    assert world.stamped_users("app") == []
    assert world.targets["app"]["metadata"]["labels"] == {}


def test_a_handover_is_one_write_of_the_lease(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    world.ask("second", "bob", wait="10m")
    world.settle()
    world.withdraw("first")
    writes = kinds(world.settle())
    assert writes[:4] == ["ReplaceLease", "WriteAssetStatus", "PatchTarget", "PatchTarget"]
    assert "DeleteLease" not in writes
    assert world.state("second") == "Held"
    assert world.stamped_users("db") == ["bob"]


def test_a_lock_that_does_not_wait_fails_at_once_and_says_who_holds_it(world: World) -> None:
    world.ask("first", "alice", reason="patching")
    world.settle()
    world.ask("second", "bob")
    world.settle()
    assert world.state("second") == "Failed"
    condition = next(c for c in world.locks["second"]["status"]["conditions"] if c["type"] == "Settled")
    assert condition["status"] == "True"
    assert condition["reason"] == "Locked"
    assert (
        "held by alice (first) since 2026-03-28T12:00:00Z, until 2026-03-28T12:30:00Z" in condition["message"]
    )


def test_a_lock_expires_and_the_next_waiter_gets_it(world: World) -> None:
    world.ask("first", ttl="1m")
    world.settle()
    world.ask("second", "bob", wait="10m")
    world.settle()
    world.pass_time(60.5)
    world.settle()
    assert world.state("first") == "Held", "the allowed skew is not over"
    world.pass_time(0.5)
    world.settle()
    assert world.state("first") == "Expired"
    assert world.state("second") == "Held"


def test_a_waiter_whose_wait_is_over_is_never_granted(world: World) -> None:
    world.ask("first", ttl="1h")
    world.settle()
    world.ask("second", "bob", wait="1m")
    world.settle()
    world.pass_time(62)
    world.withdraw("first")
    world.settle()
    assert world.state("second") == "Failed"
    assert world.lease is None


def test_waiters_are_served_by_priority_then_age(world: World) -> None:
    world.ask("holder")
    world.settle()
    for name, priority in (("old", 0), ("young", 0), ("urgent", 5)):
        world.pass_time(1)
        world.ask(name, name, wait="1h", priority=priority)
    order = []
    world.withdraw("holder")
    for _ in range(3):
        world.settle()
        [held] = [name for name in world.locks if world.state(name) == "Held"]
        order.append(held)
        world.withdraw(held)
    assert order == ["urgent", "old", "young"]


def test_a_handmade_lease_excludes_asset_locks_and_is_fenced_and_told_its_token(world: World) -> None:
    assert world.hand_make("job", seconds=60)
    world.settle()
    assert world.lease is not None
    assert world.lease["metadata"]["annotations"]["assetlock.dev/token"] == "1"
    assert world.stamped_users("app") == ["job"]
    world.ask("second", "bob")
    world.settle()
    assert world.state("second") == "Failed"


def test_an_expired_handmade_lease_is_deleted_so_that_the_next_create_succeeds(world: World) -> None:
    world.hand_make("job", seconds=60)
    world.settle()
    world.pass_time(61)
    world.settle()
    assert world.lease is None
    assert world.hand_make("another")


def test_a_renew_time_in_the_future_does_not_pin_the_lock(world: World) -> None:
    world.hand_make("job", seconds=60)
    assert world.lease is not None
    world.lease["spec"]["renewTime"] = "2099-01-01T00:00:00.000000Z"
    world._touch(world.lease)
    world._see_terms()
    world.settle()
    world.pass_time(61)
    world.settle()
    assert world.lease is None


@pytest.mark.parametrize("seconds", [None, 2147483647, -5])
def test_absurd_durations_are_brought_within_limits(world: World, seconds: int | None) -> None:
    world.hand_make("job")
    assert world.lease is not None
    world.lease["spec"]["leaseDurationSeconds"] = seconds
    world.settle()
    world.pass_time(24 * 3600 + 1)
    world.settle()
    assert world.lease is None


def test_tokens_grow_although_the_lease_is_deleted_by_hand(world: World) -> None:
    world.ask("first")
    world.settle()
    world.drop_lease()
    world.settle()
    assert world.state("first") == "Revoked"
    world.ask("second", "bob")
    world.settle()
    assert world.locks["second"]["status"]["fencingToken"] == 2


def test_a_token_once_announced_on_a_lease_stays_that_of_its_acquisition(world: World) -> None:
    world.hand_make("job", seconds=60)
    world.settle()
    assert world.asset is not None and world.lease is not None
    world.asset["status"]["holders"] = []
    world._touch(world.asset)
    repair = decide(world.observe())
    assert kinds(list(repair.writes)) == ["WriteAssetStatus"]
    assert repair.confirm == (d.ConfirmLease("asset.vm-1", world.lease["metadata"]["resourceVersion"]),)
    world.settle()
    assert world.lease["metadata"]["annotations"]["assetlock.dev/token"] == "1"
    assert [holder["fencingToken"] for holder in world.asset["status"]["holders"]] == [1]


def test_no_fence_is_taken_down_before_the_lease_was_looked_for_live(world: World) -> None:
    world.ask("first")
    world.settle()
    world.lease = None
    world.locks.clear()
    assert world.asset is not None
    for expected in ("WriteAssetStatus", "PatchTarget"):
        decision = decide(world.observe())
        present = d.ConfirmAsset(world.asset["metadata"]["resourceVersion"])
        assert decision.confirm[0] == (
            d.ConfirmLease("asset.vm-1", None) if expected == "WriteAssetStatus" else present
        )
        assert {*kinds(list(decision.writes))} == {expected}
        for write in decision.writes:
            world.apply(write)


def test_a_lock_that_a_sleeper_may_yet_announce_ends_before_another_is_recorded(world: World) -> None:
    world.ask("first", "alice", wait="1h")
    asleep = _decisions_until(world, "WriteLockStatus")
    world.lease = None
    world.ask("urgent", "bob", wait="1h", priority=5)
    world.settle()
    assert world.state("urgent") == "Held"
    with pytest.raises(Stale):
        world.apply(asleep)
    assert world.state("first") == "Revoked"


def test_nobody_is_taken_off_the_asset_before_his_lock_was_looked_for_live(world: World) -> None:
    world.ask("first", "alice", wait="1h")
    _decisions_until(world, "WriteLockStatus")
    [first] = world.locks.values()
    world.locks.clear()
    world.lease = None
    world.hand_make("job")
    decision = decide(world.observe())
    assert kinds(list(decision.writes)) == ["WriteAssetStatus"]
    assert decision.confirm == (d.ConfirmLockGone("first", first["metadata"]["uid"]),)


@pytest.mark.parametrize(("bind_to", "stamped"), [("Pod", "p-1 runner"), ("User", "- runner")])
def test_a_lock_is_stamped_for_the_pod_only_if_it_is_bound_to_it(
    world: World, bind_to: str, stamped: str
) -> None:
    world.ask("first", holder={"username": "runner", "podName": "p", "podUID": "p-1"}, bindTo=bind_to)
    world.settle()
    [value] = world.targets["app"]["metadata"]["annotations"].values()
    assert value.split("\n")[1:] == [f"1 {stamped}"]


def test_a_terminating_lease_is_never_granted_into(world: World) -> None:
    world.hand_make("job")
    assert world.lease is not None
    world.lease["metadata"] |= {
        "deletionTimestamp": "2026-03-28T12:00:00Z",
        "finalizers": ["example.com/hold"],
    }
    world.lease["spec"]["holderIdentity"] = ""
    world._touch(world.lease)
    world.ask("waiting", "bob", wait="1h")
    world.settle()
    assert world.state("waiting") == "Pending"
    [acquired, *_] = world.locks["waiting"]["status"]["conditions"]
    assert acquired["reason"] == "LeaseTerminating"
    assert "example.com/hold" in acquired["message"]


def test_a_lease_that_its_owner_deletes_is_over_although_a_finalizer_keeps_it(world: World) -> None:
    world.hand_make("job")
    world.settle()
    assert world.lease is not None
    world.lease["metadata"] |= {
        "deletionTimestamp": "2026-03-28T12:00:00Z",
        "finalizers": ["example.com/hold"],
    }
    world._touch(world.lease)
    world.settle()
    assert world.stamped_users("app") == []
    assert world.asset is not None
    assert world.asset["status"]["lockState"] == "Unlocked"


def test_an_unknown_asset_fails_a_lock_that_does_not_wait() -> None:
    world = World()
    world.ask("first")
    world.settle()
    assert world.state("first") == "Failed"
    assert world.locks["first"]["status"]["conditions"][0]["reason"] == "AssetNotFound"


def test_an_asset_deleted_while_locked_ends_the_lock_and_unfences_its_targets(world: World) -> None:
    world.ask("first")
    world.settle()
    world.asset = None
    world.settle()
    assert world.state("first") == "Revoked"
    assert world.lease is None
    assert world.targets["app"]["metadata"]["annotations"] == {}


def test_an_asset_deleted_while_waited_for_leaves_the_waiters_waiting_until_it_returns(world: World) -> None:
    world.ask("first")
    world.settle()
    world.ask("second", "bob", wait="1h")
    world.settle()
    world.asset = None
    world.settle()
    assert world.state("second") == "Pending"
    world.make_asset("app")
    world.settle()
    assert world.state("second") == "Held"


def test_a_target_that_can_not_be_fenced_fails_the_lock_before_anything_is_taken(world: World) -> None:
    world.problems["db"] = "no kind Nonsense in v1"
    world.ask("first")
    assert kinds(world.settle())[0] == "WriteLockStatus"
    assert world.state("first") == "Failed"
    assert "Nonsense" in world.locks["first"]["status"]["conditions"][0]["message"]
    assert world.lease is None


def test_a_target_found_unfenceable_after_the_claim_leaves_nothing_half_held(world: World) -> None:
    world.ask("first")
    world.apply(d.CreateLease(_claim(world)))
    world.problems["db"] = "the stamp does not fit"
    world.settle()
    assert world.state("first") == "Failed"
    assert world.lease is None
    assert world.stamped_users("app") == []


def test_a_target_made_anew_while_locked_is_stamped_again(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    del world.targets["app"]
    world.settle()
    world.make_target("app")
    assert kinds(world.settle()) == ["PatchTarget", "WriteAssetStatus"] or world.stamped_users("app") == [
        "alice"
    ]
    assert world.stamped_users("app") == ["alice"]


def test_nobody_is_told_before_a_target_that_is_not_known_was_looked_for_live(world: World) -> None:
    del world.targets["app"]
    world.ask("first", "alice")
    while not isinstance((decision := decide(world.observe())).writes[0], d.WriteLockStatus):
        world.apply(decision.writes[0])
    assert decision.confirm == (d.ConfirmNoTarget(world.observe().targets[0].target),)


def test_a_stamp_copied_from_another_object_means_nothing(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    copied = dict(world.targets["app"]["metadata"]["annotations"])
    world.targets["db"]["metadata"]["annotations"] = copied
    world._touch(world.targets["db"])
    assert world.stamped_users("db") == []
    world.settle()
    assert world.stamped_users("db") == ["alice"]


def test_a_stamp_with_a_higher_token_raises_the_next_token_instead_of_being_lowered(world: World) -> None:
    world.ask("first", "alice")
    world.settle()
    assert world.asset is not None
    world.asset["status"] = {
        "lockState": "Unlocked",
        "holders": [],
        "queue": [],
        "queueLength": 0,
        "fencingToken": 0,
    }
    world._touch(world.asset)
    world.withdraw("first")
    world.locks.clear()
    world.ask("second", "bob", wait="1m")
    world.settle()
    assert world.locks["second"]["status"]["fencingToken"] == 2


def test_a_stale_view_never_puts_a_lower_token_over_a_higher_one(world: World) -> None:
    """Another leader has recorded the token that is seen: that shows when the Asset is read live."""
    version = _forged(world, "9 - bob")
    decision = decide(world.observe())
    assert d.ConfirmAsset(version) in decision.confirm


@pytest.mark.parametrize("token", ["9", str(2**40), "9" * 18, "9" * 30])
def test_a_token_that_was_never_given_out_is_put_right_and_told(world: World, token: str) -> None:
    _forged(world, f"{token} - bob")
    [write] = [write for write in world.settle() if isinstance(write, d.PatchTarget)]
    assert world.stamped_users("app") == ["alice"]
    if len(token) <= 18:
        [event] = write.events
        assert (event.reason, event.warning) == ("StampForged", True)
        assert f"named bob with token {token}" in event.note
    world.ask("second", "carol", wait="1h")
    world.withdraw("first")
    world.settle()
    assert world.state("second") == "Held"
    assert world.asset is not None
    assert world.asset["status"]["fencingToken"] == 2


def test_what_has_more_annotations_than_the_fence_looks_at_is_not_fenceable(world: World) -> None:
    world.targets["app"]["metadata"]["annotations"] = {f"a{n}": "" for n in range(501)}
    world.ask("first", "alice")
    world.settle()
    assert world.state("first") == "Failed"
    message = world.locks["first"]["status"]["conditions"][0]["message"]
    assert "ConfigMap app has 501 annotations, of which the fence looks at no more than 500" in message


def _forged(world: World, line: str) -> str:
    """Alice holds, and somebody has put another line into the stamp; gives the Asset's version."""
    world.ask("first", "alice")
    world.settle()
    meta = world.targets["app"]["metadata"]
    [key] = meta["annotations"]
    meta["annotations"][key] = f"{meta['uid']}\n{line}"
    world._touch(world.targets["app"])
    assert world.asset is not None
    version: str = world.asset["metadata"]["resourceVersion"]
    return version


def test_a_changed_ttl_starts_a_new_term(world: World) -> None:
    world.ask("first", ttl="1m")
    world.settle()
    world.pass_time(30)
    world.locks["first"]["spec"]["ttl"] = "5m"
    world._touch(world.locks["first"])
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T12:05:30Z"


def renew(world: World, name: str = "first") -> None:
    """What admission makes of a renewal: the server's time."""
    world.locks[name]["spec"]["renewTime"] = format_micro_time(world.now)
    world._touch(world.locks[name])


def test_a_renewal_starts_a_new_term(world: World) -> None:
    world.ask("first", ttl="1m")
    world.settle()
    world.pass_time(30)
    renew(world)
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T12:01:30Z"
    assert world.settle() == []


def test_a_renewal_that_came_in_time_counts_although_it_is_seen_after_the_deadline(world: World) -> None:
    world.ask("first", ttl="1m")
    world.settle()
    world.now += datetime.timedelta(seconds=59)
    renew(world)
    world.pass_time(3)
    world.settle()
    assert world.state("first") == "Held"


def test_a_renewal_does_not_hold_on_past_what_it_renewed(world: World) -> None:
    world.ask("first", ttl="1m")
    world.settle()
    world.now += datetime.timedelta(seconds=30)
    renew(world)
    world.pass_time(62)
    world.settle()
    assert world.state("first") == "Expired"


def test_a_renewal_by_a_clock_that_is_ahead_counts_once_its_time_has_come(world: World) -> None:
    world.ask("first", ttl="1m")
    world.settle()
    world.locks["first"]["spec"]["renewTime"] = format_micro_time(world.now + datetime.timedelta(seconds=5))
    world._touch(world.locks["first"])
    world.settle()
    assert decide(world.observe()).wake_at == world.now + datetime.timedelta(seconds=5)
    world.pass_time(5)
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T12:01:05Z"


def test_a_lock_that_max_hold_ends_says_so(world: World) -> None:
    assert world.asset is not None
    world.asset["spec"]["maxHold"] = "90s"
    world.ask("first", ttl="1m")
    world.settle()
    world.pass_time(50)
    renew(world)
    world.settle()
    world.pass_time(42)
    renew(world)
    world.settle()
    assert world.state("first") == "Expired"
    assert "held for maxHold, 90s" in world.locks["first"]["status"]["conditions"][0]["message"]


def test_a_ttl_above_the_assets_longest_is_clipped_and_says_so(world: World) -> None:
    assert world.asset is not None
    world.asset["spec"]["maxTTL"] = "10m"
    world.ask("first", ttl="PT400H")
    world.settle()
    assert world.locks["first"]["status"]["expireTime"] == "2026-03-28T12:10:00Z"
    assert "PT400H clipped to 10m" in world.locks["first"]["status"]["conditions"][0]["message"]


def test_a_finished_lock_is_forgotten_when_it_says_so(world: World) -> None:
    world.ask("first", ttl="1m", ttlSecondsAfterFinished=10)
    world.settle()
    world.pass_time(61)
    world.settle()
    assert world.state("first") == "Expired"
    world.pass_time(10)
    world.settle()
    assert world.locks == {}


def test_a_lock_without_a_known_holder_is_never_granted(world: World) -> None:
    world.ask("first")
    del world.locks["first"]["spec"]["holder"]
    world.settle()
    assert world.state("first") == "Failed"
    assert world.locks["first"]["status"]["conditions"][0]["reason"] == "HolderUnknown"


def test_those_whom_the_asset_exempts_stand_in_the_stamp_with_a_token_that_nobody_is_given(
    world: World,
) -> None:
    assert world.asset is not None
    world.asset["spec"]["exempt"] = ["system:serviceaccount:db:operator"]
    world.ask("first", "alice")
    world.settle()
    [stamp] = world.targets["app"]["metadata"]["annotations"].values()
    assert stamp.splitlines()[1:] == ["1 - alice", "0 - system:serviceaccount:db:operator"]
    assert world.stamped_users("app") == ["alice"]


def test_a_settled_world_has_nothing_left_to_write(world: World) -> None:
    for name in ("a", "b", "c"):
        world.ask(name, name, wait="1h")
    world.settle()
    assert world.settle() == []


def test_a_finished_lock_that_a_finalizer_keeps_is_not_looked_at_over_and_over(world: World) -> None:
    world.ask("first", ttlSecondsAfterFinished=60)
    world.settle()
    world.locks["first"]["metadata"] |= {
        "deletionTimestamp": format_time(world.now),
        "finalizers": ["example.com/slow"],
    }
    world.settle()
    world.pass_time(3600)
    decision = decide(world.observe())
    assert (decision.writes, decision.wake_at) == ((), None)


def _decisions_until(world: World, kind: str) -> d.Write:
    """Apply what is decided up to the first write of a kind, which is given instead."""
    while True:
        for write in decide(world.observe()).writes:
            if type(write).__name__ == kind:
                return write
            world.apply(write)


def _claim(world: World) -> d.Body:
    [claim] = decide(world.observe()).writes
    assert isinstance(claim, d.CreateLease)
    return claim.body


def test_a_target_that_was_changed_after_the_holder_was_recorded_is_stamped_only_if_that_still_stands(
    world: World,
) -> None:
    world.ask("first")
    while not isinstance(decide(world.observe()).writes[0], d.PatchTarget):
        world.apply(decide(world.observe()).writes[0])
    assert decide(world.observe()).confirm == (), "what is older than the record was not unstamped since"
    for target in world.targets.values():
        world._touch(target)
    assert world.asset is not None
    assert decide(world.observe()).confirm == (d.ConfirmAsset(world.asset["metadata"]["resourceVersion"]),)


def test_a_lock_that_moves_to_another_credential_stays_the_same_acquisition(world: World) -> None:
    world.ask("first", holder={"username": "ci", "credentialId": "JTI=old"}, bindTo="Credential")
    world.ask("second", "bob", wait="1h")
    world.settle()
    assert world.writers("app") == ["JTI=old ci"]
    world.locks["first"]["spec"]["holder"]["credentialId"] = "JTI=new"
    world.settle()
    assert world.writers("app") == ["JTI=new ci"]
    assert world.state("first") == "Held"
    assert world.lease is not None
    assert world.lease["metadata"]["annotations"][names.OWNER_ANNOTATION] == "JTI=new ci"
    assert world.asset is not None
    [holder] = world.asset["status"]["holders"]
    assert (holder["credentialId"], holder["fencingToken"]) == ("JTI=new", 1)
