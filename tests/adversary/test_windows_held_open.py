"""A freeze is announced. mallory, who may lock but not maintain, wants it to close nothing."""

from __future__ import annotations

import datetime
import json

from tests.adversary.conftest import Shop
from tests.cluster.conftest import document, until


def freeze(shop: Shop, *, suspended: bool = False) -> None:
    now = datetime.datetime.now(datetime.UTC)
    start, end = (f"{now + datetime.timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}" for n in (-60, 3600))
    spec = {"assetNames": ["vm"], "start": start, "end": end, "suspend": suspended}
    shop.create(document("MaintenanceWindow", "freeze", spec))


def is_closed(shop: Shop) -> bool:
    return bool(shop.get("asset", "vm")["status"].get("lockState") == "Maintenance")


def test_names_of_window_locks_are_not_for_users(shop: Shop) -> None:
    freeze(shop)
    until(lambda: is_closed(shop), "it is closed")
    (name,) = (
        lock["metadata"]["name"]
        for lock in json.loads(shop.kubectl("get", "alk", "-o", "json").stdout)["items"]
    )
    for taken in (name, "window.freeze.vm.00000000"):
        lock = document("AssetLock", taken, {"assetName": "vm", "ttl": "1s"})
        assert 'begin with "window."' in shop.refused("mallory", "create", "-f", "-", stdin=lock)


def test_a_window_is_not_ended_through_an_owner_that_is_gone(shop: Shop) -> None:
    """Whoever may patch windows in RBAC still needs the verb maintain, for what ends them too."""
    rule = ("--verb=get,patch", "--resource=maintenancewindows.assetlock.dev")
    shop.kubectl("create", "role", "windows", *rule)
    shop.kubectl("create", "rolebinding", "windows", "--role=windows", "--user=mallory")
    freeze(shop)
    until(lambda: is_closed(shop), "it is closed")
    gone = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    for patch in ({"ownerReferences": [gone]}, {"finalizers": ["a.b/c"]}):
        done = shop.tries(
            "mallory", "patch", "mw/freeze", "--type=merge", f"--patch={json.dumps({'metadata': patch})}"
        )
        assert "may not maintain" in done.stderr
    assert shop.patched("mallory", "mw/freeze", {"metadata": {"labels": {"a": "b"}}})
