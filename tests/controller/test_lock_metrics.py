"""What Prometheus reads of the controller follows from what it knows of assets and locks."""

from __future__ import annotations

import datetime
from typing import Any

from assetlock.controller import lock_metrics as metrics
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock

NOW = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)


def lock(state: str | None, **fields: str) -> AssetLock:
    status: dict[str, Any] = {"state": state} if state else {}
    if "expires" in fields:
        status["expireTime"] = fields["expires"]
    metadata = {"name": "l", "creationTimestamp": fields.get("created", "2026-05-01T11:00:00Z")}
    return AssetLock.model_validate({"metadata": metadata, "spec": {"assetName": "vm"}, "status": status})


def test_the_oldest_wait_is_that_of_the_oldest_lock_that_still_waits() -> None:
    waiting = [lock(None, created="2026-05-01T11:59:30Z"), lock("Pending", created="2026-05-01T11:58:00Z")]
    assert metrics.oldest_wait([*waiting, lock("Held"), lock("Failed")], NOW) == 120
    assert metrics.oldest_wait([lock("Held")], NOW) == 0


def test_a_lock_is_late_when_it_is_held_past_its_end() -> None:
    late = [lock("Held", expires="2026-05-01T11:59:50Z"), lock("Held", expires="2026-05-01T11:59:20Z")]
    assert metrics.expiry_lag([*late, lock("Expired", expires="2026-05-01T10:00:00Z")], NOW) == 40
    assert metrics.expiry_lag([lock("Held", expires="2026-05-01T12:10:00Z")], NOW) == 0


def test_every_state_is_counted_also_those_that_nothing_is_in() -> None:
    states = metrics.lock_states([lock(None), lock("Pending"), lock("Held")])
    assert (states["Pending"], states["Held"], states["Revoked"]) == (2, 1, 0)
    asset = Asset.model_validate(
        {"metadata": {"name": "vm"}, "spec": {"type": "VM"}, "status": {"lockState": "Locked"}}
    )
    assert metrics.asset_states([asset]) == {"Unlocked": 0, "Locked": 1, "Maintenance": 0}
