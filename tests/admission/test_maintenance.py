"""Maintenance at admission: who writes, how it is told, and which windows and lengths are accepted."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from assetlock.admission import facts
from assetlock.admission.rules import assetlocks as assetlock_rules
from assetlock.admission.rules import assets as asset_rules
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.rules import windows as window_rules
from assetlock.admission.verdict import Admitted, Refused
from assetlock.core import names
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity, Kind
from tests.admission.reviews import KEY, UID, config_map, review, user

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
STAMP = Stamp(
    UID,
    (
        StampedHolder(7, Identity.closing("alice", "new disks")),
        StampedHolder(7, Identity("bob")),
        StampedHolder(7, Identity("sre", kind=Kind.GROUP)),
    ),
)


def closed(colour: str = "red") -> dict[str, Any]:
    """A target that alice has closed, with bob and the group sre as maintainers."""
    labels = {names.FENCED_LABEL: "true"}
    return config_map(colour=colour, labels=labels, annotations={KEY: str(STAMP)})


def admits(by: dict[str, Any]) -> bool:
    asked = review("UPDATE", by=by, old=closed(), new=closed("blue"))
    return target_rules.admits(asked, target_rules.claims_on(asked))


def test_only_maintainers_write_to_what_is_closed() -> None:
    assert admits(user("bob"))
    assert admits(user("carla", "sre"))
    assert not admits(user("alice"))
    assert not admits(user("alice: new disks", "maintenance"))
    assert not admits(user("sre"))


def test_who_closed_it_and_why_is_told_and_not_who_maintains_it() -> None:
    asked = review("UPDATE", by=user("dora"), old=closed(), new=closed("blue"))
    refusal = target_rules.refused(asked, target_rules.claims_on(asked), {}, NOW)
    assert "under maintenance by alice: new disks. Wait" in refusal.message
    assert "bob" not in refusal.message


@pytest.mark.parametrize(
    ("by", "refused"),
    [
        (user("alice"), True),
        (user("bob"), False),
        (user("carla", "sre"), False),
        (user("system:serviceaccount:ops:bot"), False),
    ],
)
def test_a_closed_asset_itself_is_its_maintainers(by: dict[str, Any], refused: bool) -> None:
    maintainers = [
        {"kind": "User", "name": "bob"},
        {"kind": "Group", "name": "sre"},
        {"kind": "ServiceAccount", "name": "bot", "namespace": "ops"},
    ]
    holder = {"identity": "alice", "mode": "Maintenance", "reason": "new disks", "maintainers": maintainers}
    old = {"metadata": {"name": "vm", "namespace": "shop"}, "spec": {}, "status": {"holders": [holder]}}
    new = {**old, "spec": {"type": "VM"}}
    refusal = asset_rules.locked(review("UPDATE", kind="Asset", by=by, old=old, new=new), NOW)
    assert (refusal is not None) is refused
    assert refusal is None or "under maintenance by alice (new disks)" in refusal.message


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"ttl": "P20D"}, True),
        ({"ttl": "P20D", "mode": "Maintenance"}, False),
        ({"ttl": "P366D", "mode": "Maintenance"}, False),
        ({"ttl": "P400D", "mode": "Maintenance"}, True),
    ],
)
def test_only_maintenance_may_be_longer_than_the_operator_allows(spec: dict[str, Any], refused: bool) -> None:
    new = {"metadata": {"name": "first"}, "spec": {"assetName": "vm", **spec}}
    verdict = assetlock_rules.decide(
        review("CREATE", kind="AssetLock", by=user("alice"), new=new), "24h", NOW
    )
    assert isinstance(verdict, Refused) is refused


def window(**spec: Any) -> Any:
    wanted = {"schedule": "0 22 * * 6", "duration": "6h", "assetNames": ["vm"], **spec}
    new = {"metadata": {"name": "freeze"}, "spec": wanted}
    return window_rules.decide(review("CREATE", kind="MaintenanceWindow", by=user("alice"), new=new), NOW)


def test_a_window_that_only_a_calendar_can_judge_is_refused_with_its_field_named() -> None:
    assert isinstance(window(), Admitted)
    refusal = window(schedule="0 0 31 4 *")
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.field) == (422, "spec.schedule")
    assert "never comes" in refusal.causes[0]
    assert window(timeZone="Moon/Tycho").field == "spec.timeZone"


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({}, ""),
        (
            {"duration": "P7D"},
            "P7D last until '0 22 * * 6' comes again, so it never ends and its assets stay",
        ),
        ({"duration": "P7D", "kind": "Allow"}, "never ends and no asset is ever closed"),
        ({"duration": "P7D", "suspend": True}, ""),
        (
            {
                "schedule": None,
                "duration": None,
                "start": "2020-01-01T00:00:00Z",
                "end": "2020-01-02T00:00:00Z",
            },
            "does not come again, so no asset is ever closed",
        ),
    ],
)
def test_who_makes_a_window_that_never_ends_or_has_ended_is_warned(spec: dict[str, Any], warned: str) -> None:
    warnings = window(**spec).warnings
    assert len(warnings) == bool(warned) and warned in "".join(warnings)


@pytest.mark.parametrize(
    "spec", [{"duration": 5}, {"duration": "banana"}, {"kind": "Open"}, {"maintainers": "bob"}]
)
def test_what_the_schema_refuses_is_left_to_it(spec: dict[str, Any]) -> None:
    assert isinstance(window(**spec), Admitted)


@pytest.mark.parametrize(("name", "passes"), [("alice", False), ("provider", False), ("bob", True)])
def test_what_carries_no_stamp_is_closed_as_what_does(name: str, passes: bool) -> None:
    holder = {"identity": "alice", "mode": "Maintenance", "maintainers": [{"kind": "User", "name": "bob"}]}
    asset = {"spec": {"exempt": ["provider"]}, "status": {"fencingToken": 7, "holders": [holder]}}
    claim = target_rules.claim_of("vm", "shop", facts.asset_facts(asset))
    asked = review("UPDATE", by=user(name), old=config_map(), new=config_map(colour="blue"))
    assert (not target_rules.refusing(asked, [claim])) is passes
