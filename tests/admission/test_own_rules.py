"""Assets and AssetLocks: who may write them, and who an AssetLock is for."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from assetlock.admission.rules import assetlocks as assetlock_rules
from assetlock.admission.rules import assets as asset_rules
from assetlock.admission.verdict import Admitted, Refused
from tests.admission.reviews import applied, review, uid_of, user

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
POD = "builder"


def asset(*targets: dict[str, str], holder: str | None = None, pod: str | None = None) -> dict[str, Any]:
    held = [{"identity": holder, **({"podUID": uid_of(pod)} if pod else {})}] if holder else []
    return {
        "metadata": {"name": "vm", "namespace": "shop"},
        "spec": {"targets": list(targets)},
        "status": {"holders": held},
    }


def target(name: str, **fields: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, **fields}


def lock(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "patching"}, "spec": {"assetName": "vm", **spec}}


def stamped_holder(by: dict[str, Any], **spec: Any) -> object:
    new = lock(**spec)
    verdict = assetlock_rules.decide(review("CREATE", kind="AssetLock", by=by, new=new), "24h", NOW)
    assert isinstance(verdict, Admitted)
    return applied(new, verdict.patch)["spec"].get("holder")


def test_a_locked_asset_is_its_holders() -> None:
    old, new = asset(holder="alice"), asset(target("a"), holder="alice")
    by_holder = review("UPDATE", kind="Asset", by=user("alice"), old=old, new=new)
    assert asset_rules.locked(by_holder, NOW) is None
    for asked in (
        review("UPDATE", kind="Asset", by=user("bob"), old=old, new=new),
        review("DELETE", kind="Asset", by=user("bob"), old=old),
    ):
        refusal = asset_rules.locked(asked, NOW)
        assert refusal is not None
        assert (refusal.code, refusal.causes) == (423, ("alice",))


def test_an_asset_that_a_pod_holds_is_that_pods() -> None:
    old, new = asset(holder="alice", pod=POD), asset(target("a"), holder="alice", pod=POD)
    for pod, refused in ((POD, False), ("other", True), (None, True)):
        asked = review("UPDATE", kind="Asset", by=user("alice", pod=pod), old=old, new=new)
        assert (asset_rules.locked(asked, NOW) is not None) is refused


def test_a_sync_that_changes_nothing_passes_a_locked_asset() -> None:
    old = asset(target("a"), holder="alice")
    asked = review("UPDATE", kind="Asset", by=user("argocd"), old=old, new={**old, "status": {}})
    assert asset_rules.locked(asked, NOW) is None


def test_only_added_targets_are_asked_about_each_in_its_namespace() -> None:
    old = asset(target("a"), target("b", namespace="shop"))
    new = asset(target("a", namespace="shop"), target("b"), target("b", namespace="db"), target("c"))
    asked = review("UPDATE", kind="Asset", by=user("bob"), old=old, new=new)
    found = [(one.name, one.namespace) for one in asset_rules.new_targets(asked)]
    assert found == [("b", "db"), ("c", "shop")]


def test_targets_that_the_requester_may_not_update_are_named() -> None:
    asked = review("CREATE", kind="Asset", by=user("bob"), new=asset(*(target(f"t{n}") for n in range(9))))
    verdict = asset_rules.decided(asked, asset_rules.new_targets(asked))
    assert isinstance(verdict, Refused)
    assert verdict.code == 403
    assert "bob may not update ConfigMap t0 (v1, namespace shop)" in verdict.message
    assert "and 4 more" in verdict.message


def test_a_lock_is_for_who_creates_it() -> None:
    assert stamped_holder(user("bob")) == {"username": "bob"}
    pod = {"username": "bob", "podName": POD, "podUID": uid_of(POD)}
    assert stamped_holder(user("bob", pod=POD)) == pod
    assert stamped_holder(user("bob", pod=POD), holder={"username": "bob"}) == pod


@pytest.mark.parametrize("named", [{"username": "carol"}, {"username": "bob", "podUID": "made-up"}])
def test_what_a_client_says_of_the_holder_is_left_to_the_policy(named: dict[str, str]) -> None:
    assert stamped_holder(user("bob"), holder=named) == named


@pytest.mark.parametrize("ttl", ["banana", "0s", "-5m", "9600h", "P400D", "1y"])
def test_a_ttl_that_can_not_be_meant_is_refused(ttl: str) -> None:
    asked = review("CREATE", kind="AssetLock", by=user("bob"), new=lock(ttl=ttl))
    verdict = assetlock_rules.decide(asked, "24h", NOW)
    if ttl == "0s":
        assert isinstance(verdict, Admitted), "the schema refuses zero, in words of its own"
    else:
        assert isinstance(verdict, Refused)
        assert verdict.field == "spec.ttl"


def test_an_old_ttl_that_is_too_long_by_now_may_stay() -> None:
    old, new = lock(ttl="48h"), lock(ttl="48h", reason="still at it")
    asked = review("UPDATE", kind="AssetLock", by=user("bob"), old=old, new=new)
    assert isinstance(assetlock_rules.decide(asked, "24h", NOW), Admitted)


def renewed(last: int, left: int) -> object:
    """What becomes of a renewal so many seconds after the last one, of a lock that has so many left."""
    former = (NOW - datetime.timedelta(seconds=last)).isoformat()
    until = (NOW + datetime.timedelta(seconds=left)).isoformat()
    old = {**lock(renewTime=former), "status": {"state": "Held", "expireTime": until}}
    new = lock(renewTime="2099-01-01T00:00:00Z")
    verdict = assetlock_rules.decide(
        review("UPDATE", kind="AssetLock", by=user("bob"), old=old, new=new), "24h", NOW
    )
    assert isinstance(verdict, Admitted)
    return applied(new, verdict.patch)["spec"]["renewTime"] != former


@pytest.mark.parametrize(
    ("last", "left", "counts"),
    [(3, 3600, False), (11, 3600, True), (3, 20, True), (1, 20, False), (3, -5, True), (-3, 3600, True)],
)
def test_a_renewal_counts_as_the_last_one_only_while_the_lock_has_long_to_go(
    last: int, left: int, counts: bool
) -> None:
    assert renewed(last, left) is counts
