"""Two hold an asset together. One of them may change it, and would take the other's protection away."""

from __future__ import annotations

import pytest

from tests.adversary.conftest import Shop
from tests.cluster.conftest import until


@pytest.fixture
def together(shop: Shop) -> Shop:
    shop.kubectl(
        "create", "role", "keeper", "--verb=get,update,patch,delete", "--resource=assets.assetlock.dev"
    )
    for user in ("alice", "mallory"):
        shop.kubectl("create", "rolebinding", f"keeper-{user}", "--role=keeper", f"--user={user}")
    assert shop.patched("root", "asset/vm", {"spec": {"capacity": 2}})
    shop.held("one", "alice", asset="vm", ttl="1h", mode="Shared")
    shop.held("two", "mallory", asset="vm", ttl="1h", mode="Shared")
    return shop


def test_one_does_not_take_the_targets_away_from_under_the_other(together: Shop) -> None:
    for spec in ({"targets": []}, {"onConflict": "Warn"}, {"capacity": 1}, {"maxHold": "1s"}):
        assert not together.patched("mallory", "asset/vm", {"spec": spec})
    assert "held by others too" in together.refused("mallory", "delete", "asset", "vm")
    assert together.stamps("cm/app")
    assert together.patched("mallory", "asset/vm", {"spec": {"description": "of us two"}})


def test_who_holds_it_alone_may(together: Shop) -> None:
    together.kubectl("delete", "alk", "one", user="alice")
    until(lambda: len(together.get("asset", "vm")["status"]["holders"]) == 1, "mallory is alone")
    assert together.patched("mallory", "asset/vm", {"spec": {"targets": []}})


def test_an_asset_is_not_given_an_owner_that_is_gone_by_who_may_not_delete_it(shop: Shop) -> None:
    shop.kubectl("create", "role", "editor", "--verb=get,update,patch", "--resource=assets.assetlock.dev")
    shop.kubectl("create", "rolebinding", "editor", "--role=editor", "--user=mallory")
    gone = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    assert not shop.patched("mallory", "asset/vm", {"metadata": {"ownerReferences": [gone]}})
    assert not shop.patched("mallory", "asset/vm", {"metadata": {"finalizers": ["a.b/c"]}})
    assert shop.patched("mallory", "asset/vm", {"metadata": {"labels": {"a": "b"}}})
