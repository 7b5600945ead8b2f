"""Who may write to a locked target, and what becomes of the stamps."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from assetlock.admission.facts import AssetFacts, asset_facts
from assetlock.admission.review import Review
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.verdict import Dropped
from assetlock.core import names
from tests.admission.reviews import KEY, UID, applied, config_map, review, stamped, user

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def admits(asked: Review) -> bool:
    return target_rules.admits(asked, target_rules.claims_on(asked))


def update(by: dict[str, Any], old: dict[str, Any], new: dict[str, Any] | None = None) -> Review:
    return review("UPDATE", by=by, old=old, new=new or {**old, "data": {"colour": "blue"}})


def refusal(asked: Review, asset: AssetFacts | None) -> Any:
    claims = target_rules.claims_on(asked)
    return target_rules.refused(asked, claims, {("shop", "vm"): asset}, NOW)


def held_until(minutes: int) -> AssetFacts:
    holder = {
        "identity": "alice",
        "acquireTime": "2029-12-31T23:00:00Z",
        "expireTime": (NOW + datetime.timedelta(minutes=minutes)).isoformat(),
        "reason": "kernel",
    }
    return asset_facts({"status": {"fencingToken": 7, "holders": [holder]}})


def test_the_stamped_holder_writes_and_a_stranger_does_not() -> None:
    assert admits(update(user("alice"), stamped("alice")))
    assert not admits(update(user("bob"), stamped("alice")))
    assert not admits(review("DELETE", by=user("bob"), old=stamped("alice")))


def test_a_pods_lock_is_that_pods() -> None:
    assert admits(update(user("alice", pod="p1"), stamped("alice", pod="p1")))
    assert not admits(update(user("alice", pod="p2"), stamped("alice", pod="p1")))
    assert not admits(update(user("alice"), stamped("alice", pod="p1")))


def test_a_credentials_lock_is_that_credentials() -> None:
    locked = stamped("alice", credential="JTI=build-7")
    assert admits(update(user("alice", credential="JTI=build-7"), locked))
    for other in (
        user("alice", credential="JTI=build-8"),
        user("alice"),
        user("bob", credential="JTI=build-7"),
    ):
        assert not admits(update(other, locked))


def test_a_stamp_for_another_object_means_nothing() -> None:
    assert admits(update(user("bob"), stamped("alice", uid="another")))


def test_an_unreadable_stamp_admits_nobody() -> None:
    broken = config_map(labels={names.FENCED_LABEL: "true"}, annotations={KEY: f"{UID}\nnonsense"})
    assert not admits(update(user("alice"), broken))


@pytest.mark.parametrize("value", [1, 1.0, True])
def test_what_python_takes_for_equal_is_still_a_change(value: object) -> None:
    old = {**stamped("alice"), "data": {"flag": 1}}
    is_same = type(value) is int
    assert admits(update(user("bob"), old, {**old, "data": {"flag": value}})) is is_same


def test_the_bookkeeping_of_the_api_server_is_no_change() -> None:
    old = stamped("alice")
    metadata = {**old["metadata"], "managedFields": [{"manager": "x"}], "resourceVersion": "2"}
    assert admits(update(user("bob"), old, {**old, "metadata": metadata}))


def test_breaking_the_glass_is_admitted_and_nothing_is_put_back() -> None:
    asked = update(user("bob", names.BREAK_GLASS_GROUP), stamped("alice"), config_map())
    assert admits(asked)
    assert target_rules.admitted(asked, target_rules.claims_on(asked)).patch == ()


def test_only_what_would_have_been_refused_breaks_the_glass() -> None:
    held, grouped = stamped("alice"), [names.BREAK_GLASS_GROUP]

    def breaks(asked: Review) -> bool:
        return target_rules.breaks_glass(asked, target_rules.claims_on(asked))

    assert breaks(update(user("bob", *grouped), held))
    assert not breaks(update(user("bob"), held))
    assert not breaks(update(user("alice", *grouped), held))
    assert not breaks(update(user("bob", *grouped), held, held))
    assert not breaks(update(user("bob", *grouped), config_map()))


@pytest.mark.parametrize(
    "new",
    [
        config_map(colour="blue"),
        config_map(colour="blue", labels=None, annotations=None),
        config_map(colour="blue", labels={"app": "x"}, annotations={KEY: "old stamp", "note": "y"}),
    ],
    ids=["dropped", "null", "changed"],
)
def test_stamps_that_the_holder_drops_or_changes_are_put_back(new: dict[str, Any]) -> None:
    asked = update(user("alice"), stamped("alice"), new)
    patch = target_rules.admitted(asked, target_rules.claims_on(asked)).patch
    after = applied(new, patch)
    assert after["metadata"]["labels"][names.FENCED_LABEL] == "true"
    assert after["metadata"]["annotations"][KEY] == stamped("alice")["metadata"]["annotations"][KEY]
    assert after["data"] == {"colour": "blue"}


def test_a_forged_stamp_is_taken_out() -> None:
    old = config_map()
    asked = update(user("bob"), old, stamped("bob"))
    patch = target_rules.admitted(asked, target_rules.claims_on(asked)).patch
    assert KEY not in applied(stamped("bob"), patch)["metadata"]["annotations"]


def test_a_write_that_keeps_the_stamps_is_not_patched() -> None:
    asked = update(user("alice"), stamped("alice"))
    assert target_rules.admitted(asked, target_rules.claims_on(asked)).patch == ()


def test_the_refusal_says_who_since_when_until_when_why_and_when_to_retry() -> None:
    refused = refusal(update(user("bob"), stamped("alice")), held_until(minutes=10))
    assert (refused.code, refused.reason) == (423, "Locked")
    assert "alice since 2029-12-31T23:00:00Z until 2030-01-01T00:10:00Z (kernel)" in refused.message
    assert refused.causes == ("alice since 2029-12-31T23:00:00Z until 2030-01-01T00:10:00Z (kernel)",)
    assert refused.retry_after == 60


def test_a_lock_that_is_just_ending_is_worth_a_retry_at_once() -> None:
    refused = refusal(update(user("bob"), stamped("alice")), asset_facts({"status": {"fencingToken": 7}}))
    assert "is being freed: try again" in refused.message
    assert refused.retry_after == 1


@pytest.mark.parametrize("asset", [None, asset_facts({"status": {"fencingToken": 9, "holders": [{}]}})])
def test_what_is_not_known_of_the_asset_is_told_from_the_stamp(asset: AssetFacts | None) -> None:
    assert "held by alice" in refusal(update(user("bob"), stamped("alice")), asset).message


def test_two_hundred_holders_are_ten_and_the_number_of_the_rest() -> None:
    many = stamped(*(f"user-{n} " + "x" * 300 for n in range(200)))
    refused = refusal(update(user("bob"), many), None)
    assert "and 190 more" in refused.message
    assert len(refused.message.encode()) < 5 * 1024
    assert len(refused.causes) == 10


def test_controllers_update_but_do_not_delete() -> None:
    controller = user("system:serviceaccount:kube-system:deployment-controller")
    assert admits(update(controller, stamped("alice")))
    assert not admits(review("DELETE", by=controller, old=stamped("alice")))


def test_the_kubelet_updates_its_own_node_alone() -> None:
    node = stamped("alice")
    asked = {"old": node, "new": {**node, "data": {}}, "kind": "Node"}
    assert admits(review("UPDATE", by=user("system:node:settings"), **asked))
    assert not admits(review("UPDATE", by=user("system:node:other"), **asked))
    assert not admits(review("UPDATE", by=user("system:node:settings"), old=node, new=asked["new"]))


def test_what_is_being_deleted_may_be_finished_but_not_changed() -> None:
    going = stamped("alice")
    going["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a/b"]}
    finished = {**going, "metadata": {k: v for k, v in going["metadata"].items() if k != "finalizers"}}
    assert admits(update(user("bob"), going, finished))
    assert admits(review("DELETE", by=user("kubelet"), old=going))
    assert not admits(update(user("bob"), going))


def test_that_an_object_is_going_is_not_the_clients_to_say() -> None:
    claimed = stamped("alice")
    claimed["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a/b"]}
    assert not admits(update(user("bob"), stamped("alice"), claimed))


HELD = {"fencingToken": 7, "holders": [{"identity": "alice"}]}
WARNING = asset_facts({"spec": {"onConflict": "Warn"}, "status": HELD})
REJECTING = asset_facts({"spec": {}, "status": HELD})
CHANGED = config_map(
    colour="blue",
    labels={"app": "x"},
    annotations=None,
    ownerReferences=[{"kind": "Node"}],
    managedFields=[{"manager": "bob"}],
    resourceVersion="5",
)


def dropped(asked: Review, **assets: AssetFacts | None) -> Dropped | None:
    known = {("shop", name): asset for name, asset in assets.items()}
    claims = target_rules.claims_on(asked)
    return target_rules.dropped(asked, claims, known, target_rules.refused(asked, claims, known, NOW))


def test_a_warning_asset_puts_the_old_content_back_and_says_why() -> None:
    old = stamped("alice")
    verdict = dropped(update(user("bob"), old, {**CHANGED, "immutable": True}), vm=WARNING)
    assert verdict is not None
    [warning] = verdict.warnings
    assert warning.startswith("nothing was written")
    assert "alice" in warning
    after = applied({**CHANGED, "immutable": True}, verdict.patch)
    assert after == {**old, "metadata": {**old["metadata"], "resourceVersion": "5"}}


def test_the_version_that_the_client_names_stays_so_that_a_conflict_is_one() -> None:
    old = stamped("alice")
    old["metadata"]["resourceVersion"] = "6"
    verdict = dropped(update(user("bob"), old, CHANGED), vm=WARNING)
    assert verdict is not None
    assert applied(CHANGED, verdict.patch)["metadata"]["resourceVersion"] == "5"


@pytest.mark.parametrize("asset", [None, REJECTING], ids=["unknown", "rejecting"])
def test_a_write_is_dropped_only_where_the_asset_says_so(asset: AssetFacts | None) -> None:
    assert dropped(update(user("bob"), stamped("alice")), vm=asset) is None


def test_what_is_nested_too_deeply_to_be_known_is_refused_rather_than_put_back() -> None:
    asked = dataclasses.replace(update(user("bob"), stamped("alice"), CHANGED), is_whole=False)
    assert dropped(asked, vm=WARNING) is None


def test_a_deletion_can_not_be_dropped() -> None:
    assert dropped(review("DELETE", by=user("bob"), old=stamped("alice")), vm=WARNING) is None


def test_one_rejecting_asset_among_those_that_refuse_refuses() -> None:
    other = names.stamp_key("db", "shop")
    shared = stamped("alice")
    shared["metadata"]["annotations"][other] = f"{UID}\n3 - bob"
    by_carol, by_bob = update(user("carol"), shared), update(user("bob"), shared)
    assert dropped(by_carol, vm=WARNING, db=REJECTING) is None
    assert dropped(by_carol, vm=WARNING, db=WARNING) is not None
    assert dropped(by_bob, vm=WARNING, db=REJECTING) is None


def test_a_write_of_another_assets_holder_is_refused_and_never_dropped() -> None:
    shared = stamped("alice")
    shared["metadata"]["annotations"][names.stamp_key("db", "shop")] = f"{UID}\n3 - bob"
    assert dropped(update(user("bob"), shared, CHANGED), vm=WARNING, db=WARNING) is None


def test_a_status_is_open_but_not_the_metadata_through_it() -> None:
    old = stamped("alice")
    status = {"by": user("bob"), "old": old, "subresource": "status"}
    assert admits(review("UPDATE", new={**old, "status": {"ready": True}}, **status))
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"app": "x"}}}
    assert not admits(review("UPDATE", new=labelled, **status))


def test_a_stamp_of_an_asset_that_does_not_exist_is_refused_with_the_way_out() -> None:
    message = refusal(update(user("bob"), stamped("alice")), None).message
    assert "asset vm in namespace shop, which does not exist any more (held by alice)" in message
    assert "create an Asset of that name with this object among its targets" in message
    assert "assetlock uninstall" in message


@pytest.mark.parametrize(("minutes", "wait"), [(3, "5m"), (9, "10m"), (118, "2h"), (24 * 60, "24h5m")])
def test_the_advice_is_a_wait_that_outlasts_the_holder(minutes: int, wait: str) -> None:
    message = refusal(update(user("bob"), stamped("alice")), held_until(minutes)).message
    assert message.endswith(f"with assetName: vm and wait: {wait}")
