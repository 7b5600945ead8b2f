"""What the API server hands out is read whole, and written back under the same names."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock, LockState

RAW_ASSET: dict[str, Any] = {
    "apiVersion": "assetlock.dev/v1alpha1",
    "kind": "Asset",
    "metadata": {
        "name": "shop-db",
        "namespace": "shop",
        "uid": "7d1c",
        "resourceVersion": "12",
        "generation": 3,
        "creationTimestamp": "2026-05-04T12:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {
        "defaultTTL": "PT30M",
        "maxTTL": "P1D",
        "metadata": {"owner": {"team": "shop"}},
        "targets": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}],
        "addedLater": True,
    },
    "status": {
        "lockState": "Locked",
        "fencingToken": 41,
        "holders": [{"identity": "alice", "podUID": "0a1b", "fencingToken": 41, "acquisition": "c3"}],
    },
}


def test_an_asset_is_read_with_fields_of_later_versions_left_aside() -> None:
    asset = Asset.model_validate(RAW_ASSET)
    assert (asset.spec.default_ttl, asset.spec.max_ttl) == ("PT30M", "P1D")
    assert asset.spec.metadata == {"owner": {"team": "shop"}}
    assert asset.status.holders[0].pod_uid == "0a1b"


def test_a_status_is_written_under_the_names_it_was_read_by() -> None:
    status = Asset.model_validate(RAW_ASSET).status
    written = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert written["holders"] == [{"mode": "Exclusive", "slots": [0], **RAW_ASSET["status"]["holders"][0]}]


def test_an_object_that_nobody_has_looked_at_has_an_empty_status() -> None:
    lock = AssetLock.model_validate({"metadata": {"name": "a"}, "spec": {"assetName": "db"}})
    assert (lock.status.state, lock.status.conditions) == (None, [])
    assert (lock.spec.mode, lock.spec.wait, lock.spec.bind_to) == ("Exclusive", "0s", "User")


def test_a_model_is_never_changed_in_place() -> None:
    asset = Asset.model_validate(RAW_ASSET)
    with pytest.raises(ValidationError, match="frozen"):
        asset.status.__setattr__("fencing_token", 1)


def test_nothing_follows_any_state_but_pending_and_held() -> None:
    assert {state for state in LockState if not state.terminal} == {LockState.PENDING, LockState.HELD}
