"""Guarded namespaces: not deleted over a lock, and what is ours on them stays."""

from __future__ import annotations

import datetime
from typing import Any

from assetlock.admission.facts import AssetFacts, asset_facts
from assetlock.admission.review import Review
from assetlock.admission.rules import namespaces as namespace_rules
from assetlock.core import names
from tests.admission.reviews import applied, review, user

NOW = datetime.datetime(2026, 3, 28, 12, 0, tzinfo=datetime.UTC)
FOREIGN = names.namespace_fence_key("vm", "ops")


def namespace(annotations: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    labels = {names.GUARDED_LABEL: "true", "team": "shop"}
    return {"metadata": {"name": "shop", "labels": labels, "annotations": annotations or {}, **metadata}}


def asset(holder: str, token: int = 7) -> AssetFacts:
    until = "2026-03-28T12:10:00Z"
    held = {"identity": holder, "fencingToken": token, "expireTime": until}
    return asset_facts({"metadata": {}, "status": {"fencingToken": token, "holders": [held]}})


def deletion(by: str = "bob", old: dict[str, Any] | None = None, *groups: str) -> Review:
    return review("DELETE", by=user(by, *groups), old=old or namespace(), kind="Namespace")


def test_the_locks_of_assets_there_and_of_others_with_something_there_stand_against_it() -> None:
    asked = deletion(old=namespace({FOREIGN: "deployments.apps/web\n4 - carol", "note": "x"}))
    claims = namespace_rules.claims_on(asked, {"web": asset("alice")})
    assert [(claim.namespace, claim.asset) for claim in claims] == [("shop", "web"), ("ops", "vm")]
    assert not namespace_rules.admits(asked, claims)


def test_all_of_them_are_named_with_their_holders() -> None:
    asked = deletion()
    there = {"db": asset("carol"), "web": asset("alice")}
    claims = namespace_rules.claims_on(asked, there)
    assets = {("shop", name): known for name, known in there.items()}
    refused = namespace_rules.refused(asked, claims, assets, NOW)
    assert (refused.code, refused.retry_after) == (423, 60)
    assert refused.message == (
        "namespace shop can't be deleted while others hold locks in it: asset db in namespace shop is held by "
        "carol until 2026-03-28T12:10:00Z; asset web in namespace shop is held by alice until "
        "2026-03-28T12:10:00Z"
    )
    assert len(refused.causes) == 2


def test_many_locks_are_counted_rather_than_listed() -> None:
    asked = deletion()
    there = {f"vm-{number:02}": asset("alice") for number in range(40)}
    refused = namespace_rules.refused(asked, namespace_rules.claims_on(asked, there), {}, NOW)
    assert refused.message.endswith("; and 30 more")


def test_the_holder_of_every_lock_there_may_delete_it() -> None:
    claims = namespace_rules.claims_on(deletion("alice"), {"web": asset("alice")})
    assert namespace_rules.admits(deletion("alice"), claims)
    claims = namespace_rules.claims_on(deletion("alice"), {"web": asset("alice"), "db": asset("carol")})
    assert not namespace_rules.admits(deletion("alice"), claims)


def test_without_locks_and_through_broken_glass_and_when_it_is_going_already_it_may_go() -> None:
    there = {"web": asset("alice")}
    going = namespace(deletionTimestamp="2026-03-28T12:00:00Z")
    assert namespace_rules.admits(deletion(), ())
    for asked in (deletion("bob", None, names.BREAK_GLASS_GROUP), deletion("bob", going)):
        assert namespace_rules.admits(asked, namespace_rules.claims_on(asked, there))


def test_a_replaced_namespace_keeps_label_and_guards_and_has_what_it_was_given() -> None:
    old = namespace({FOREIGN: "deployments.apps/web\n4 - carol", "note": "old"})
    forged = names.namespace_fence_key("forged", "ops")
    new = {"metadata": {"name": "shop", "labels": {"team": "new"}, "annotations": {forged: "9 - bob"}}}
    asked = review("UPDATE", by=user("bob"), new=new, old=old, kind="Namespace")
    result = applied(new, namespace_rules.kept(asked).patch)["metadata"]
    assert result["labels"] == {"team": "new", names.GUARDED_LABEL: "true"}
    assert result["annotations"] == {FOREIGN: "deployments.apps/web\n4 - carol"}


def test_a_namespace_replaced_without_any_metadata_of_its_own_keeps_them_too() -> None:
    old = namespace({FOREIGN: "4 - carol"})
    asked = review("UPDATE", by=user("bob"), new={"metadata": {"name": "shop"}}, old=old, kind="Namespace")
    result = applied({"metadata": {"name": "shop"}}, namespace_rules.kept(asked).patch)["metadata"]
    assert result["labels"] == {names.GUARDED_LABEL: "true"}
    assert result["annotations"] == {FOREIGN: "4 - carol"}
