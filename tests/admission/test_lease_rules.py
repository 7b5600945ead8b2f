"""Leases that are locks: whose they are, and what is written into them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from assetlock.admission.rules import leases as lease_rules
from assetlock.admission.rules.leases import Terms
from assetlock.admission.verdict import Admitted, Refused
from assetlock.core import names
from tests.admission.reviews import applied, lease, review, uid_of, user

NOW = datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.UTC)
TERMS = Terms(NOW, datetime.timedelta(minutes=30))
NOW_TEXT = "2030-01-01T12:00:00.000000Z"
EARLIER = "2030-01-01T11:59:30.000000Z"


def after(operation: str, terms: Terms = TERMS, **parts: Any) -> dict[str, Any]:
    """The Lease as it would be stored."""
    asked = review(operation, kind="Lease", **parts)
    verdict = lease_rules.decide(asked, terms)
    assert isinstance(verdict, Admitted), verdict
    return applied(parts["new"], verdict.patch)


def refused(operation: str, terms: Terms = TERMS, **parts: Any) -> Refused:
    verdict = lease_rules.decide(review(operation, kind="Lease", **parts), terms)
    assert isinstance(verdict, Refused)
    return verdict


def test_a_new_lease_gets_owner_acquisition_and_our_times() -> None:
    wishful = lease(owner="somebody", renewTime="2099-01-01T00:00:00.000000Z", leaseTransitions=40)
    wishful["metadata"]["annotations"] |= {names.TOKEN_ANNOTATION: "9"}
    stored = after("CREATE", by=user("bob"), new=wishful)
    assert stored["metadata"]["annotations"] == {
        names.OWNER_ANNOTATION: "- bob",
        names.ACQUISITION_ANNOTATION: "review-1",
    }
    assert stored["spec"] == {
        "holderIdentity": "job-1",
        "leaseDurationSeconds": 60,
        "acquireTime": NOW_TEXT,
        "renewTime": NOW_TEXT,
        "leaseTransitions": 0,
    }


@pytest.mark.parametrize("mark", [names.LOCK_ANNOTATION, names.WITHHELD_ANNOTATION])
def test_a_new_lease_with_a_mark_of_the_operators_is_a_copy_and_holds_nothing(mark: str) -> None:
    copied = lease(owner="somebody")
    copied["metadata"]["annotations"] |= {mark: "x", names.TOKEN_ANNOTATION: "9"}
    stored = after("CREATE", by=user("bob"), new=copied)
    assert stored["metadata"]["annotations"] == {}
    assert stored["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize(
    ("slot", "capacity", "there"), [(0, 1, True), (1, 2, True), (1, 1, False), (9, 3, False)]
)
def test_a_slot_is_taken_only_if_the_asset_has_it(slot: int, capacity: int, there: bool) -> None:
    terms = dataclasses.replace(TERMS, capacity=capacity)
    further = lease()
    further["metadata"]["name"] = names.lease_name("vm-1", slot)
    further["metadata"]["labels"] = {names.ASSET_LABEL: "vm-1"}
    if there:
        assert after("CREATE", terms, by=user("bob"), new=further)["spec"]["holderIdentity"] == "job-1"
    else:
        answer = refused("CREATE", terms, by=user("bob"), new=further)
        assert (answer.code, answer.field) == (422, "metadata.name")
        assert f"asset vm-1 has no slot {slot}: its capacity is {capacity}" in answer.message


def test_a_pods_lease_is_that_pods_unless_it_says_otherwise() -> None:
    bound = after("CREATE", by=user("bob", pod="p1"), new=lease())
    assert bound["metadata"]["annotations"][names.OWNER_ANNOTATION] == f"{uid_of('p1')} bob"
    shared = lease()
    shared["metadata"]["annotations"][names.BIND_TO_ANNOTATION] = "User"
    free = after("CREATE", by=user("bob", pod="p1"), new=shared)
    assert free["metadata"]["annotations"][names.OWNER_ANNOTATION] == "- bob"


def test_a_lease_may_be_bound_to_a_credential_if_that_has_an_id() -> None:
    bound = lease()
    bound["metadata"]["annotations"][names.BIND_TO_ANNOTATION] = "Credential"
    stored = after("CREATE", by=user("bob", pod="p1", credential="JTI=build-7"), new=bound)
    assert stored["metadata"]["annotations"][names.OWNER_ANNOTATION] == "JTI=build-7 bob"
    assert "the credential of bob has no id" in refused("CREATE", by=user("bob"), new=bound).message


def test_a_lease_without_a_duration_gets_the_default() -> None:
    stored = after("CREATE", by=user("bob"), new=lease(leaseDurationSeconds=None))
    assert stored["spec"]["leaseDurationSeconds"] == 1800


@pytest.mark.parametrize("seconds", [0, -1, 86401, 2147483647])
def test_an_absurd_duration_is_refused(seconds: int) -> None:
    assert refused("CREATE", by=user("bob"), new=lease(leaseDurationSeconds=seconds)).code == 422


def test_a_renewal_counts_from_our_clock_and_keeps_the_acquisition() -> None:
    old = lease(acquireTime=EARLIER, renewTime=EARLIER, leaseTransitions=3)
    new = lease(owner=None, renewTime="2099-01-01T00:00:00.000000Z", leaseTransitions=9)
    stored = after("UPDATE", by=user("alice"), old=old, new=new)
    assert stored["metadata"]["annotations"] == old["metadata"]["annotations"]
    assert stored["spec"] == {**old["spec"], "renewTime": NOW_TEXT}


def test_a_change_by_who_may_unlock_is_no_sign_of_life() -> None:
    old = lease(acquireTime=EARLIER, renewTime=EARLIER, leaseTransitions=3)
    new = lease(leaseDurationSeconds=5, renewTime=NOW_TEXT)
    terms = Terms(NOW, datetime.timedelta(minutes=30), may_unlock=True)
    stored = after("UPDATE", terms, by=user("admin"), old=old, new=new)
    assert stored["spec"]["renewTime"] == EARLIER


@pytest.mark.parametrize("new", [lease("mine"), lease(""), lease(leaseDurationSeconds=5), None])
def test_somebody_elses_lease_is_locked_with_its_holder_named(new: dict[str, Any] | None) -> None:
    operation = "UPDATE" if new else "DELETE"
    refusal = refused(operation, by=user("bob"), old=lease(acquireTime=EARLIER, renewTime=EARLIER), new=new)
    assert (refusal.code, refusal.retry_after) == (423, 30)
    assert "held as 'job-1' by alice since 2030-01-01T11:59:30Z until 2030-01-01T12:00:30Z" in refusal.message


def test_an_expired_lease_is_freed_by_the_operator_and_not_taken() -> None:
    old = lease(renewTime="2030-01-01T11:00:00.000000Z")
    refusal = refused("UPDATE", by=user("bob"), old=old, new=lease("mine"))
    assert "ran out at 2030-01-01T11:01:00Z and is being freed" in refusal.message


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00"])
def test_a_lease_from_the_end_of_time_is_locked_like_any_other(time: str) -> None:
    """One that was made while nobody stamped it can say anything."""
    endless = lease(renewTime=time, acquireTime=time)
    assert "held as 'job-1' by alice" in refused("DELETE", by=user("carol"), old=endless).message


def test_a_lease_is_not_called_expired_within_the_skew() -> None:
    old = lease(renewTime="2030-01-01T11:58:59.500000Z")
    assert "is held" in refused("UPDATE", by=user("bob"), old=old, new=lease("mine")).message


def test_the_lease_of_an_assetlock_is_changed_through_that() -> None:
    old = lease()
    old["metadata"]["annotations"][names.LOCK_ANNOTATION] = "patching"
    refusal = refused("DELETE", by=user("alice"), old=old)
    assert "managed by AssetLock patching" in refusal.message


def revoked(by: str | None) -> dict[str, Any]:
    marked = lease()
    if by is not None:
        marked["metadata"]["annotations"][names.REVOKED_ANNOTATION] = by
    return marked


def test_a_mark_of_revocation_names_who_makes_it_and_stays_until_the_lock_has_ended() -> None:
    may = dataclasses.replace(TERMS, may_unlock=True)
    stored = after("UPDATE", may, by=user("bob"), old=lease(), new=revoked("somebody else"))
    assert stored["metadata"]["annotations"][names.REVOKED_ANNOTATION] == "bob"
    renewed = after("UPDATE", by=user("alice"), old=stored, new=revoked(None))
    assert renewed["metadata"]["annotations"][names.REVOKED_ANNOTATION] == "bob"
    freed = after("UPDATE", by=user("alice"), old=stored, new={**stored, "spec": {"holderIdentity": ""}})
    assert freed["metadata"]["annotations"] == {}


def test_taking_a_free_lease_is_a_new_acquisition() -> None:
    old = lease("", owner=None, leaseTransitions=3)
    new = lease("mine", owner=None, leaseTransitions=3)
    new["metadata"]["annotations"][names.TOKEN_ANNOTATION] = "7"
    stored = after("UPDATE", by=user("bob"), old=old, new=new)
    assert stored["metadata"]["annotations"] == {
        names.OWNER_ANNOTATION: "- bob",
        names.ACQUISITION_ANNOTATION: "review-1",
    }
    assert stored["spec"]["leaseTransitions"] == 4


def test_the_same_user_under_another_identity_is_a_new_acquisition() -> None:
    stored = after("UPDATE", by=user("alice"), old=lease(), new=lease("job-2"))
    assert stored["metadata"]["annotations"][names.ACQUISITION_ANNOTATION] == "review-1"


def test_nothing_of_an_acquisition_stays_on_a_freed_lease() -> None:
    stored = after("UPDATE", by=user("alice"), old=lease(), new=lease(""))
    assert stored["metadata"]["annotations"] == {}


def test_collectors_delete_without_being_asked_for_rights() -> None:
    collector = user("system:serviceaccount:kube-system:generic-garbage-collector")
    assert not lease_rules.needs_unlock(review("DELETE", kind="Lease", by=collector, old=lease()))


def test_a_lease_that_names_no_holder_is_made_with_a_warning() -> None:
    asked = review("CREATE", kind="Lease", by=user("bob"), new=lease(None, owner=None))
    verdict = lease_rules.decide(asked, TERMS)
    assert isinstance(verdict, Admitted)
    assert "locks nothing" in verdict.warnings[0]


def test_a_lease_of_a_pod_names_the_pod_by_which_its_end_is_seen() -> None:
    in_pod = user("runner", pod="worker")
    stored = after("CREATE", by=in_pod, new=lease())
    assert stored["metadata"]["annotations"][names.POD_ANNOTATION] == "worker"
    waived = lease()
    waived["metadata"]["annotations"] |= {names.BIND_TO_ANNOTATION: "User", names.POD_ANNOTATION: "another"}
    stored = after("CREATE", by=in_pod, new=waived)
    assert names.POD_ANNOTATION not in stored["metadata"]["annotations"]


def test_a_lease_that_is_created_free_is_marked_to_be_kept_through_every_holder() -> None:
    free = after("CREATE", by=user("bob"), new=lease("", owner=None))
    assert free["metadata"]["annotations"] == {names.KEEP_ANNOTATION: "true"}
    taken = {**free, "spec": {"holderIdentity": "mine", "leaseDurationSeconds": 60}}
    stored = after("UPDATE", by=user("bob"), old=free, new=taken)
    assert stored["metadata"]["annotations"][names.KEEP_ANNOTATION] == "true"
    given_back = after("UPDATE", by=user("bob"), old=stored, new={**stored, "spec": {"holderIdentity": ""}})
    assert given_back["metadata"]["annotations"] == {names.KEEP_ANNOTATION: "true"}
