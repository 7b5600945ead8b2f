"""Maintenance as people meet it: refusals with their reason, windows that open and close, bad input told apart."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from tests.cluster.conftest import Operated, document, until

HOUR = datetime.timedelta(hours=1)


def at(ahead: datetime.timedelta) -> str:
    return (datetime.datetime.now(datetime.UTC) + ahead).strftime("%Y-%m-%dT%H:%M:%SZ")


def freeze(**spec: Any) -> dict[str, Any]:
    """A window from an hour ago until in an hour."""
    times = {"start": at(-HOUR), "end": at(HOUR), "assetNames": ["vm-1"], "reason": "year end"}
    return document("MaintenanceWindow", "freeze", {**times, **spec})


@pytest.fixture
def shop(operated: Operated) -> Operated:
    """An asset with a target, and carol, who may maintain."""
    operated.asset("vm-1", "app")
    operated.kubectl("create", "rolebinding", "carol", "--clusterrole=assetlock-maintainer", "--user=carol")
    return operated


def window(shop: Operated) -> dict[str, Any]:
    return shop.get("mw", "freeze")


def condition(shop: Operated, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in window(shop)["status"]["conditions"] if c["type"] == kind)
    return found


def closed(shop: Operated) -> None:
    shop.kubectl("wait", "ast/vm-1", "--for=jsonpath={.status.lockState}=Maintenance", "--timeout=30s")
    until(lambda: not shop.unfenced("app"), "the fence goes up")


def opened(shop: Operated) -> None:
    shop.kubectl("wait", "ast/vm-1", "--for=jsonpath={.status.lockState}=Unlocked", "--timeout=30s")
    until(lambda: shop.unfenced("app"), "the fence comes down")


def test_maintenance_refuses_everybody_and_says_why(shop: Operated) -> None:
    shop.held(
        "quiet",
        "carol",
        mode="Maintenance",
        ttl="P3D",
        reason="new disks",
        maintainers=[{"kind": "User", "name": "bob"}],
    )
    for user in ("alice", "carol"):
        refused = shop.write("app", user)
        assert refused.returncode == 1
        assert "under maintenance by carol since" in refused.stderr
        assert "(new disks)" in refused.stderr
    assert shop.write("app", "bob").returncode == 0
    assert shop.get("ast", "vm-1")["status"]["lockState"] == "Maintenance"


def test_a_maintainer_may_be_a_group(shop: Operated) -> None:
    group = [{"kind": "Group", "name": "system:authenticated"}]
    shop.held("quiet", "carol", mode="Maintenance", maintainers=group)
    assert shop.write("app", "bob").returncode == 0


def test_a_colleague_takes_maintenance_over(shop: Operated) -> None:
    shop.held("quiet", "carol", mode="Maintenance")
    shop.kubectl("create", "rolebinding", "bob", "--clusterrole=assetlock-maintainer", "--user=bob")
    shop.held("mine-now", "bob", mode="Maintenance", whenHeld="Revoke", reason="shift change")
    assert shop.get("alk", "quiet")["status"]["state"] == "Revoked"
    assert "under maintenance by bob" in shop.write("app", "carol").stderr


def test_a_window_closes_and_when_it_is_deleted_opens(shop: Operated) -> None:
    shop.create(freeze(), user="carol")
    closed(shop)
    assert "window:freeze" in shop.write("app", "alice").stderr
    shop.kubectl("wait", "mw/freeze", "--for=condition=Enforced", "--timeout=30s")
    status = window(shop)["status"]
    assert status["active"] is True
    assert status["nextEnd"] == window(shop)["spec"]["end"]
    shop.kubectl("delete", "mw", "freeze", user="carol")
    opened(shop)
    assert shop.write("app", "alice").returncode == 0


def test_a_window_that_is_suspended_opens_and_one_that_is_edited_closes_again(shop: Operated) -> None:
    shop.create(freeze(), user="carol")
    closed(shop)
    shop.kubectl("patch", "mw", "freeze", "--type=merge", '-p={"spec":{"suspend":true}}', user="carol")
    opened(shop)
    assert condition(shop, "Ready")["reason"] == "Suspended"
    shop.kubectl("patch", "mw", "freeze", "--type=merge", '-p={"spec":{"suspend":false}}', user="carol")
    closed(shop)


def test_a_window_opens_and_closes_by_the_clock(shop: Operated) -> None:
    soon = datetime.timedelta(seconds=8)
    shop.create(freeze(start=at(soon), end=at(2 * soon)), user="carol")
    assert shop.write("app", "alice").returncode == 0
    closed(shop)
    opened(shop)
    until(lambda: condition(shop, "Ready")["reason"] == "Over", "it is over for good")


def test_a_lock_asked_for_inside_a_window_is_told_when_it_opens(shop: Operated) -> None:
    shop.create(freeze(), user="carol")
    closed(shop)
    shop.lock("first", "alice")
    settled = shop.settled("first")
    assert settled["reason"] == "Maintenance"
    assert f"maintenance ends at {window(shop)['spec']['end']}" in settled["message"]


def test_a_window_says_what_it_waits_for_and_what_it_skipped(shop: Operated) -> None:
    shop.held("first", "alice", ttl="1h")
    shop.create(freeze(), user="carol")
    until(lambda: condition(shop, "Enforced")["reason"] == "Waiting", "the window waits")
    assert "vm-1 is still held by alice until" in condition(shop, "Enforced")["message"]
    shop.kubectl("patch", "mw", "freeze", "--type=merge", '-p={"spec":{"whenHeld":"Skip"}}', user="carol")
    until(lambda: condition(shop, "Enforced")["reason"] == "Skipped", "the window passes by")
    assert "held by alice" in condition(shop, "Enforced")["message"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"schedule": "0 0 30 2 *"}, "never comes"),
        ({"schedule": "0 0 22 * * 6"}, "has 6 fields, not five"),
        ({"schedule": "0 25 * * *"}, "'25' is not between 0 and 23"),
        ({"schedule": "25:00"}, "has 1 fields, not five"),
        ({"schedule": "@every 1h"}, "'@every 1h' is not one of @yearly"),
        ({"schedule": "TZ=UTC 0 22 * * 6"}, "goes into timeZone"),
        ({"timeZone": "Europe/Atlantis"}, "no time zone 'Europe/Atlantis'"),
        ({"duration": "0s"}, "must be longer than zero"),
        ({"duration": "P400D"}, "at most 366 days"),
        ({"duration": None}, "how long the window lasts each time"),
        (
            {"schedule": None, "duration": None, "start": at(HOUR), "end": at(-HOUR)},
            "must be later than start",
        ),
        ({"start": at(HOUR), "end": at(2 * HOUR)}, "either schedule and duration, or start and end"),
        ({"assetNames": []}, "names no assets"),
        ({"maintainers": [{"kind": "ServiceAccount", "name": "bot"}]}, "a ServiceAccount has a namespace"),
    ],
)
def test_a_window_that_can_not_be_meant_is_refused(shop: Operated, spec: dict[str, Any], said: str) -> None:
    good = {"schedule": "0 22 * * 6", "duration": "6h", "timeZone": "Europe/Berlin", "assetNames": ["vm-1"]}
    wanted = {key: value for key, value in {**good, **spec}.items() if value is not None}
    refused = shop.create(document("MaintenanceWindow", "freeze", wanted), user="carol", check=False)
    assert refused.returncode == 1
    assert said in refused.stderr


def test_a_window_whose_assets_do_not_exist_says_so(shop: Operated) -> None:
    shop.create(freeze(assetNames=["vm-9"]))
    until(lambda: "conditions" in window(shop).get("status", {}), "the window is looked at")
    assert condition(shop, "Ready")["reason"] == "AssetNotFound"
    assert "vm-9" in condition(shop, "Ready")["message"]
    shop.asset("vm-9")
    shop.kubectl("wait", "mw/freeze", "--for=condition=Ready", "--timeout=30s")


def test_maintenance_fields_belong_to_maintenance(shop: Operated) -> None:
    refused = shop.lock("first", "alice", whenHeld="Revoke", check=False)
    assert "only a lock with mode: Maintenance has it" in refused.stderr


def test_applying_a_window_twice_changes_nothing(shop: Operated) -> None:
    manifest = json.dumps(freeze())
    shop.kubectl("apply", "-f", "-", stdin=manifest)
    closed(shop)
    shop.kubectl("wait", "mw/freeze", "--for=condition=Enforced", "--timeout=30s")
    before = window(shop)["metadata"]
    again = shop.kubectl("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in again.stdout
    assert window(shop)["metadata"]["generation"] == before["generation"]


def test_two_field_managers_and_the_operator_do_not_fight_over_a_window(shop: Operated) -> None:
    whole = freeze()
    reason = {**whole, "spec": {"reason": "year end"}}
    whole["spec"].pop("reason")
    shop.kubectl("apply", "--server-side", "--field-manager=git", "-f", "-", stdin=json.dumps(whole))
    shop.kubectl("apply", "--server-side", "--field-manager=ops", "-f", "-", stdin=json.dumps(reason))
    closed(shop)
    shop.kubectl("apply", "--server-side", "--field-manager=git", "-f", "-", stdin=json.dumps(whole))
    assert window(shop)["spec"]["reason"] == "year end"
    shown = shop.kubectl("get", "mw", "freeze", "-o", "json", "--show-managed-fields").stdout
    managed = json.loads(shown)["metadata"]["managedFields"]
    managers = {entry["manager"]: entry["fieldsV1"] for entry in managed}
    assert set(managers) - {"git", "ops"}
    ours = [fields for name, fields in managers.items() if name not in ("git", "ops")]
    assert all(set(fields) <= {"f:status"} for fields in ours), "the operator owns nothing but the status"
