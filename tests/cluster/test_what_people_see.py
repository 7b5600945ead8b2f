"""What `kubectl get`, warnings and Events say is what is so."""

from __future__ import annotations

import json
import re

import pytest
from tests.cluster.conftest import Operated, document, lease, until


def columns(operated: Operated, kind: str, name: str, *options: str) -> dict[str, str]:
    """A row of `kubectl get` by its titles."""
    said = operated.kubectl("get", kind, name, *options).stdout
    head, row = said.splitlines()
    titles = list(re.finditer(r"\S+(?: \S+)*", head))
    ends = [title.start() for title in titles[1:]] + [len(row) + 1]
    return {title.group(): row[title.start() : end].strip() for title, end in zip(titles, ends, strict=True)}


def events(operated: Operated, kind: str, name: str) -> list[str]:
    found = json.loads(operated.kubectl("get", "events.v1.events.k8s.io", "-o", "json").stdout)["items"]
    about = [e for e in found if (e["regarding"]["kind"], e["regarding"]["name"]) == (kind, name)]
    return [f"{event['reason']}: {event['note']}" for event in about]


def test_an_asset_shows_who_holds_it_why_since_when_and_that_it_is_fenced(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", reason="kernel patch", holderId="build-7", ttl="1h")
    asset = columns(operated, "ast", "vm-1", "-o", "wide")
    assert (asset["LOCK"], asset["HOLDER"], asset["REASON"]) == ("Locked", "alice", "kernel patch")
    assert (asset["FENCED"], asset["HOLDER ID"], asset["MODE"], asset["TOKEN"]) == (
        *("True", "build-7", "Exclusive", "1"),
    )
    assert re.fullmatch(r"\d+[smh].*", asset["SINCE"])
    lock = columns(operated, "alk", "first", "-o", "wide")
    assert (lock["ASSET"], lock["STATE"], lock["REASON"], lock["FENCED"]) == (
        "vm-1",
        "Held",
        "Granted",
        "True",
    )
    assert (lock["HOLDER ID"], lock["TOKEN"], lock["FOR"]) == ("build-7", "1", "kernel patch")


def test_who_waits_and_who_failed_shows_why(operated: Operated) -> None:
    operated.asset("vm-1")
    operated.held("first")
    operated.lock("second", "bob", wait="1h")
    operated.lock("third", "carol")
    operated.settled("third")
    operated.wait("alk/second", "jsonpath={.status.queuePosition}=1")
    assert columns(operated, "alk", "third")["REASON"] == "Locked"
    waiting = columns(operated, "alk", "second", "-o", "wide")
    assert (waiting["STATE"], waiting["REASON"]) == ("Pending", "Locked")
    assert waiting["WAITS FOR"] == "alice (first)"
    until(
        lambda: columns(operated, "ast", "vm-1", "-o", "wide")["NEXT"] == "bob", "the asset shows who is next"
    )


def test_a_shared_asset_shows_how_many_of_its_slots_are_taken(operated: Operated) -> None:
    operated.asset("vm-1", capacity=3)
    operated.held("first", mode="Shared")
    assert columns(operated, "ast", "vm-1")["SLOTS"] == "1/3"
    operated.held("second", "bob", mode="Shared")
    until(lambda: columns(operated, "ast", "vm-1")["SLOTS"] == "2/3", "another slot is taken")
    assert columns(operated, "ast", "vm-1")["HOLDER"] == "alice and 1 more"


def test_a_lock_over_several_assets_is_readable(operated: Operated) -> None:
    for name in ("a", "b"):
        operated.asset(name)
        operated.kubectl("label", "asset", name, "pool=runners")
    operated.create(document("AssetLock", "both", {"assetNames": ["b", "a"]}), user="alice")
    operated.wait("alk/both", "condition=Acquired")
    shown = columns(operated, "alk", "both", "-o", "wide")
    assert (shown["ASSET"], shown["TOKEN"]) == ("a, b", "1, 1")
    pool = {"assetSelector": {"matchLabels": {"pool": "runners"}}, "wait": "1h"}
    operated.create(document("AssetLock", "any", pool), user="bob")
    until(
        lambda: columns(operated, "alk", "any")["ASSET"] == "1 of pool=runners",
        "what it waits for is readable",
    )


def test_a_lock_that_has_ended_shows_no_end_in_the_future(operated: Operated) -> None:
    operated.asset("vm-1")
    operated.held("first", ttl="1h")
    operated.kubectl("annotate", "lease", "asset.vm-1", "assetlock.dev/revoked-by=root")
    operated.wait("alk/first", "jsonpath={.status.state}=Revoked")
    assert columns(operated, "alk", "first")["UNTIL"] == ""


def test_an_asset_that_is_quarantined_says_so_and_does_not_accept_locks(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1s", extendOnWrite=False, onExpiry="Quarantine")
    until(
        lambda: columns(operated, "ast", "vm-1")["HOLDER"] == "nobody (quarantined)",
        "the asset is quarantined",
    )
    operated.kubectl("wait", "ast/vm-1", "--for=condition=Ready=false", "--timeout=10s")
    refused = operated.write("app", "bob").stderr
    assert "deletes AssetLock first" in refused
    assert "Wait" not in refused
    operated.lock("second", "bob")
    assert "set spec.wait" not in operated.settled("second")["message"]


@pytest.mark.parametrize(
    ("target", "reason", "said"),
    [
        ({"name": "typo"}, "TargetNotFound", "ConfigMap typo does not exist"),
        (
            {"selector": {"matchLabels": {"app": "typo"}}},
            "NothingSelected",
            "no ConfigMap is selected by app=typo",
        ),
    ],
)
def test_a_lock_that_protects_nothing_says_so_when_it_is_created_and_when_it_is_acquired(
    operated: Operated, target: dict[str, object], reason: str, said: str
) -> None:
    operated.create(
        document("Asset", "vm-1", {"targets": [{"apiVersion": "v1", "kind": "ConfigMap", **target}]})
    )
    operated.kubectl("wait", "ast/vm-1", "--for=condition=Fenced=false", "--timeout=20s")
    known = f"a lock on asset vm-1 does not protect everything: {said}"
    until(
        lambda: known in operated.lock("dry", check=False, ttl="1h").stderr or _gone(operated, "dry"),
        "a warning",
    )
    operated.wait("alk/dry", "condition=Acquired")
    assert said in operated.condition("dry", "Acquired")["message"]
    assert columns(operated, "alk", "dry")["FENCED"] == columns(operated, "ast", "vm-1")["FENCED"] == "False"
    assert operated.condition("dry", "Fenced")["reason"] == reason


def _gone(operated: Operated, lock: str) -> bool:
    """Admission may not have seen yet what the Asset's status says: then try again."""
    operated.kubectl("delete", "alk", lock, user="alice")
    return False


def test_a_lock_on_an_asset_that_does_not_exist_is_warned_of_and_told_which_is_meant(
    operated: Operated,
) -> None:
    operated.asset("vm-1")
    until(
        lambda: (
            "there is no asset vm-l in namespace" in operated.lock("first", asset="vm-l").stderr
            and "is vm-1 meant?" in operated.lock("second", asset="vm-l").stderr
        ),
        "a hint",
    )
    assert "set spec.wait" not in operated.settled("first")["message"]


def test_a_lease_for_an_unknown_asset_and_a_window_about_one_are_warned_of(operated: Operated) -> None:
    assert "there is no asset nowhere" in operated.create(lease("nowhere"), user="alice").stderr
    window = {"schedule": "0 22 * * 6", "duration": "6h", "assetNames": ["nowhere"]}
    assert "there is no asset nowhere" in operated.create(document("MaintenanceWindow", "w", window)).stderr
    operated.kubectl("wait", "mw/w", "--for=condition=Ready=false", "--timeout=20s")
    shown = columns(operated, "mw", "w")
    assert (shown["READY"], shown["REASON"]) == ("False", "AssetNotFound")


def test_a_target_of_a_kind_in_the_wrong_group_is_warned_of(operated: Operated) -> None:
    target = {"apiVersion": "v1", "kind": "Deployment", "name": "web"}
    said = operated.create(document("Asset", "vm-1", {"targets": [target]})).stderr
    assert "the API server has no kind 'Deployment' in 'v1'; is apps/v1 meant?" in said


def test_pods_beside_their_workload_are_warned_of(operated: Operated) -> None:
    targets = [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        {"apiVersion": "v1", "kind": "Pod", "selector": {"matchLabels": {"app": "db"}}},
    ]
    said = operated.create(document("Asset", "vm-1", {"targets": targets})).stderr
    assert "Warning: a StatefulSet and Pods are targets of one asset" in said


def test_events_say_whose_lock_ended_and_why_on_the_asset_too(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1h")
    operated.kubectl("annotate", "lease", "asset.vm-1", "assetlock.dev/revoked-by=root")
    operated.wait("alk/first", "jsonpath={.status.state}=Revoked")
    whose = "alice (AssetLock first, token 1)"
    until(
        lambda: (
            {
                f"Locked: locked by {whose}",
                f"Unlocked: no longer locked by {whose}: Revoked, revoked by kubernetes-admin",
            }
            <= set(events(operated, "Asset", "vm-1"))
        ),
        "the asset's events",
    )
    until(
        lambda: (
            {
                f"Acquired: asset vm-1 is locked by {whose}",
                f"Revoked: asset vm-1 is no longer locked by {whose}: revoked by kubernetes-admin",
            }
            <= set(events(operated, "AssetLock", "first"))
        ),
        "the lock's events",
    )


def test_the_advice_is_to_wait_for_as_long_as_the_lock_may_last(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="2h")
    assert "Wait, or queue: create an AssetLock" in (refused := operated.write("app", "bob").stderr)
    assert re.search(r"wait: 2h(5m)?\b", refused)


def test_what_the_operator_has_not_seen_is_not_taken_for_ready(operated: Operated) -> None:
    created = operated.kubectl(
        *("create", "-o", "json", "-f", "-"),
        stdin=json.dumps(document("AssetLock", "first", {"assetName": "nowhere"})),
        user="alice",
    )
    assert json.loads(created.stdout)["status"] == {"observedGeneration": 0}


@pytest.mark.parametrize(
    "how", [("apply",), ("apply", "--server-side", "--force-conflicts")], ids=["apply", "ssa"]
)
def test_applying_a_lock_that_has_ended_warns(operated: Operated, how: tuple[str, ...]) -> None:
    operated.asset("vm-1")
    operated.held("first", ttl="1s")
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")
    manifest = json.dumps(document("AssetLock", "first", {"assetName": "vm-1", "ttl": "1s"}))
    said = operated.kubectl(*how, "-f", "-", stdin=manifest, user="alice").stderr
    assert "AssetLock first has ended (Expired) and locks nothing" in said
