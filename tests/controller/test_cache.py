"""What is known of objects, told in any order."""

import datetime
from typing import Any

import pytest

from assetlock.controller.cache.cache import Cache
from assetlock.controller.keys import AssetKey, LineKey, LockKey
from assetlock.core import names
from assetlock.core.locks import queue
from assetlock.model.assetlock import AssetLock

KEY = AssetKey("team-a", "vm")


@pytest.fixture
def cache() -> Cache:
    return Cache()


def lock(version: int, name: str = "first", uid: str = "u1", asset: str = "vm") -> dict[str, Any]:
    meta = {"namespace": "team-a", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"kind": "AssetLock", "metadata": meta, "spec": {"assetName": asset}}


def lease(version: int, holder: str = "job", renewed: str = "2030-01-01T00:00:00.000000Z") -> dict[str, Any]:
    meta = {"namespace": "team-a", "name": "asset.vm", "uid": "l1", "resourceVersion": str(version)}
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 30}
    return {"kind": "Lease", "metadata": meta | {"labels": {names.ASSET_LABEL: "vm"}}, "spec": spec}


NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def locks_of(cache: Cache, key: AssetKey = KEY) -> tuple[AssetLock, ...]:
    return cache.locks_to_look_at(key, NOW, lambda _: NOW)[0]


def versions(cache: Cache) -> list[str]:
    return [known.metadata.resource_version for known in locks_of(cache)]


def test_a_later_version_replaces_an_earlier_one(cache: Cache) -> None:
    cache.put(lock(9), 0.0)
    assert cache.put(lock(10), 0.0) == {KEY}
    assert versions(cache) == ["10"]


def test_an_earlier_version_changes_nothing_however_late_it_comes(cache: Cache) -> None:
    cache.put(lock(10), 0.0)
    assert cache.put(lock(9), 0.0) == set()
    assert versions(cache) == ["10"]


def test_the_same_version_twice_concerns_nobody(cache: Cache) -> None:
    cache.put(lock(10), 0.0)
    assert cache.put(lock(10), 0.0) == set()


def test_what_was_deleted_does_not_come_back_by_an_older_event(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    assert cache.remove(lock(8)) == {KEY}
    assert cache.put(lock(7), 0.0) == set()
    assert versions(cache) == []


def test_what_was_deleted_and_made_anew_is_there_whichever_is_heard_first(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    cache.put(lock(9, uid="u2"), 0.0)
    assert cache.remove(lock(8)) == set()
    assert versions(cache) == ["9"]


def test_only_the_lock_that_was_seen_deleted_is_known_to_be(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    cache.put(lock(6, name="second", uid="u2"), 0.0)
    cache.remove(lock(8))
    cache.replace("AssetLock", [], 7, 0.0)
    assert versions(cache) == []
    assert (cache.was_deleted("u1"), cache.was_deleted("u2")) == (True, False)


def test_deletions_are_not_remembered_for_ever(cache: Cache) -> None:
    cache.remove(lock(8))
    cache.replace("AssetLock", [], 9, 0.0)
    assert not cache.was_deleted("u1")


def test_a_whole_list_takes_out_what_it_lacks(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    cache.put(lock(6, name="second", uid="u2"), 0.0)
    assert cache.replace("AssetLock", [lock(6, name="second", uid="u2")], 20, 0.0) == {KEY}
    assert versions(cache) == ["6"]


def test_a_whole_list_does_not_take_out_what_is_newer_than_it(cache: Cache) -> None:
    cache.put(lock(21), 0.0)
    assert cache.replace("AssetLock", [], 20, 0.0) == set()
    assert versions(cache) == ["21"]


def test_an_old_list_does_not_bring_back_what_was_deleted_after_it(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    cache.remove(lock(25))
    assert cache.replace("AssetLock", [lock(5)], 20, 0.0) == set()
    assert versions(cache) == []


def test_a_live_read_that_finds_nothing_does_not_take_out_what_came_meanwhile(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    known = cache.version("AssetLock", "team-a", "first")
    cache.put(lock(9, uid="u2"), 0.0)
    assert cache.vanished("AssetLock", "team-a", "first", known) == set()
    assert versions(cache) == ["9"]


def test_a_live_read_that_finds_nothing_takes_out_what_was_known(cache: Cache) -> None:
    cache.put(lock(5), 0.0)
    assert cache.vanished("AssetLock", "team-a", "first", 5) == {KEY}
    assert versions(cache) == []


def test_a_lease_whose_name_is_not_that_of_its_asset_is_no_lock(cache: Cache) -> None:
    stranger = lease(5)
    stranger["metadata"]["name"] = "something"
    cache.put(stranger, 0.0)
    assert cache.leases_of(KEY) == ()


def test_a_lease_that_loses_its_label_is_no_lock_any_more(cache: Cache) -> None:
    cache.put(lease(5), 0.0)
    unlabelled = lease(6)
    unlabelled["metadata"]["labels"] = {}
    assert cache.put(unlabelled, 0.0) == {KEY}
    assert cache.leases_of(KEY) == ()


def test_a_term_is_as_old_as_its_first_sight(cache: Cache) -> None:
    cache.put(lease(5), 100.0)
    cache.put(lease(6), 150.0)
    assert [seen.seen for seen in cache.leases_of(KEY)] == [100.0]


def test_a_renewal_begins_a_term(cache: Cache) -> None:
    cache.put(lease(5), 100.0)
    cache.put(lease(6, renewed="2030-01-01T00:00:10.000000Z"), 150.0)
    assert [seen.seen for seen in cache.leases_of(KEY)] == [150.0]


def test_a_lock_is_as_old_as_its_first_sight_until_it_is_made_anew(cache: Cache) -> None:
    cache.put(lock(5), 100.0)
    cache.put(lock(6), 150.0)
    assert cache.locks_seen(locks_of(cache)) == {"u1": 100.0}
    cache.remove(lock(7))
    cache.put(lock(8, uid="u2"), 200.0)
    assert cache.locks_seen(locks_of(cache)) == {"u2": 200.0}


def test_everything_that_anything_is_known_of_is_known(cache: Cache) -> None:
    cache.put(lock(5, asset="db"), 0.0)
    cache.put(lease(6), 0.0)
    assert cache.known() == {KEY, AssetKey("team-a", "db")}


def over(version: int, name: str = "both", **spec: Any) -> dict[str, Any]:
    """A lock over several assets, or any of some."""
    raw = lock(version, name, uid=f"u-{name}")
    return {**raw, "spec": spec}


def pool(version: int, name: str, **labels: str) -> dict[str, Any]:
    meta = {"namespace": "team-a", "name": name, "uid": f"a-{name}", "resourceVersion": str(version)}
    return {"kind": "Asset", "metadata": {**meta, "labels": labels}, "spec": {}}


def test_a_lock_over_several_assets_concerns_each_of_them_and_is_looked_at_by_itself(cache: Cache) -> None:
    named = {AssetKey("team-a", "db"), AssetKey("team-a", "vm"), LockKey("team-a", "both")}
    assert cache.put(over(1, assetNames=["vm", "db"]), 0.0) == named
    assert cache.put(lease(2), 0.0) == {KEY, LockKey("team-a", "both")}
    assert cache.put(lock(3), 0.0) == {KEY, LockKey("team-a", "both")}
    assert [known.metadata.name for known in locks_of(cache, AssetKey("team-a", "db"))] == ["both"]
    assert cache.remove(over(4, assetNames=["vm", "db"])) == named
    assert cache.put(lock(5), 0.0) == {KEY}


def test_a_lock_on_any_of_a_pool_is_in_line_on_all_that_have_the_label_until_it_has_chosen(
    cache: Cache,
) -> None:
    cache.put(pool(1, "vm", pool="x"), 0.0)
    cache.put(pool(2, "db"), 0.0)
    choosing = over(3, "any", assetSelector={"matchLabels": {"pool": "x"}})
    assert cache.put(choosing, 0.0) == {LockKey("team-a", "any")}
    assert [known.metadata.name for known in locks_of(cache)] == ["any"]
    assert cache.put(pool(4, "db", pool="x"), 0.0) == {AssetKey("team-a", "db"), LockKey("team-a", "any")}
    cache.put(lock(5, "behind", uid="u-behind"), 0.0)
    chosen = over(6, "any", assetSelector={"matchLabels": {"pool": "x"}}) | {
        "status": {"assets": [{"name": "db"}]}
    }
    assert cache.put(chosen, 0.0) == {KEY, AssetKey("team-a", "db"), LockKey("team-a", "any")}
    assert [known.metadata.name for known in locks_of(cache)] == ["behind"]


def test_a_lock_that_still_has_a_lease_is_known_there_although_it_chose_others_since(cache: Cache) -> None:
    cache.put(over(1, "any", assetSelector={"matchLabels": {"pool": "x"}}), 0.0)
    left = lease(2)
    left["metadata"]["annotations"] = {names.LOCK_ANNOTATION: "any"}
    cache.put(left, 0.0)
    assert [known.metadata.name for known in locks_of(cache)] == ["any"]


def test_while_an_asset_is_full_nobody_who_may_choose_it_is_troubled(cache: Cache) -> None:
    cache.put(pool(1, "vm", pool="x"), 0.0)
    cache.put(over(2, "any", assetSelector={"matchLabels": {"pool": "x"}}), 0.0)
    assert cache.put(lease(3), 0.0) == {KEY}
    assert cache.remove(lease(4)) == {KEY, LockKey("team-a", "any")}


def window(version: int, start: str = "2030-01-01T00:00:00Z") -> dict[str, Any]:
    meta = {"namespace": "team-a", "name": "night", "uid": "w1", "resourceVersion": str(version)}
    return {
        "kind": "MaintenanceWindow",
        "metadata": meta,
        "spec": {"start": start, "end": "2031-01-01T00:00:00Z"},
    }


def test_what_can_not_be_read_is_told_once_and_is_as_if_it_were_not_there(cache: Cache) -> None:
    cache.put(window(1), 0.0)
    for _ in range(2):
        cache.replace("MaintenanceWindow", [window(2, start="0000-01-01T00:00:00Z")], 3, 0.0)
    told = cache.unreadable.take_untold()
    assert [(namespace, event.name, event.reason) for namespace, event in told] == [
        ("team-a", "night", "Unreadable")
    ]
    assert list(cache.windows) == []
    assert ("MaintenanceWindow", "team-a", "night") in cache.unreadable


def test_what_can_be_read_again_is_there_again(cache: Cache) -> None:
    cache.put(window(2, start="0000-01-01T00:00:00Z"), 0.0)
    cache.put(window(4), 0.0)
    assert [known.metadata.name for known in cache.windows] == ["night"]
    assert ("MaintenanceWindow", "team-a", "night") not in cache.unreadable


def test_what_could_not_be_read_is_forgotten_when_it_is_gone(cache: Cache) -> None:
    cache.put(window(2, start="0000-01-01T00:00:00Z"), 0.0)
    cache.replace("MaintenanceWindow", [], 3, 0.0)
    assert ("MaintenanceWindow", "team-a", "night") not in cache.unreadable


@pytest.mark.parametrize("moment", ["0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"])
def test_a_lease_with_a_time_that_nobody_can_reckon_with_is_timed_from_when_it_was_seen(
    cache: Cache, moment: str
) -> None:
    cache.put(lease(1, renewed=moment), 7.0)
    (seen,) = cache.leases_of(KEY)
    assert (seen.lease.spec.renew_time, seen.seen) == (None, 7.0)


def test_who_waits_far_back_concerns_the_line_and_not_yet_the_asset(cache: Cache) -> None:
    def waiting(version: int, number: int) -> dict[str, Any]:
        raw = lock(version, f"w-{number:02}", uid=f"u-{number:02}")
        return raw | {"spec": {"assetName": "vm", "wait": "1h", "holder": {"username": "bob"}}}

    line = LineKey("team-a", "vm")
    for number in range(queue.SHOWN):
        assert KEY in cache.put(waiting(number + 1, number), 0.0)
    assert cache.put(waiting(20, 50), 0.0) == {line}
    assert cache.put(waiting(21, 50), 0.0) == {line}
    assert cache.put(waiting(22, 5), 0.0) == {KEY, line}, "who is near is looked at, and moves the others"
    assert cache.remove(waiting(23, 50)) == {line}
