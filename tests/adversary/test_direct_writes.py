"""Whoever may write the object without a lock tries to, while alice holds it."""

from __future__ import annotations

import pytest

from tests.adversary.conftest import Shop

WAYS = (
    ("patch", "configmap", "app", "--type=merge", '--patch={"data":{"value":"evil"}}'),
    ("label", "configmap", "app", "assetlock.dev/fenced-"),
    ("delete", "configmap", "app"),
)


@pytest.mark.parametrize("user", ["eddie", "mallory", "root"])
def test_nobody_writes_to_what_alice_holds(locked: Shop, user: str) -> None:
    for way in WAYS:
        assert "is locked through asset vm" in locked.refused(user, *way)
    assert locked.patched("alice", "configmap/app", {"data": {"value": "good"}})
