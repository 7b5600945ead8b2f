"""The API server stores what Python can't read. Whoever creates such an object stops nobody but himself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assetlock.cli.stack import Part
from tests.adversary.conftest import Shop
from tests.cluster.conftest import BREAK_GLASS, document, until

NO_TIME = "0000-01-01T00:00:00.000000Z"


def test_a_lease_renewed_in_the_year_0_stops_nobody(shop: Shop) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "asset.zero", "labels": {"assetlock.dev/asset": "zero"}},
        "spec": {"renewTime": NO_TIME, "acquireTime": NO_TIME},
    }
    shop.tries("eddie", "create", "-f", "-", stdin=lease)
    shop.stack.restart(Part.CONTROLLER)
    shop.held("work", "alice", asset="vm", ttl="1h")
    assert shop.stamps("configmap/app")


def test_an_asset_nested_1200_deep_stops_nobody(shop: Shop) -> None:
    """Also not the admission process, whose cache has it, nor the watch that begins with a list of it."""
    shop.does("root", "create", "-f", "-", stdin=nested_asset("deep", 1200))
    shop.stack.restart(Part.CONTROLLER)
    shop.held("work", "alice", asset="vm", ttl="1h")
    assert "423" in shop.refused(
        "mallory", "patch", "cm/app", "--type=merge", '-p={"data":{"a":"b"}}', "-v=6"
    )
    shop.does("root", "label", "asset", "deep", "changed=true")
    shop.held("more", "mallory", asset="deep")


@pytest.mark.parametrize("start", ["0000-12-18T16:00:00Z", "2030-12-18T16:00:00+24:00"])
def test_a_window_that_nobody_can_read_is_refused(shop: Shop, start: str) -> None:
    window = document(
        "MaintenanceWindow", "never", {"assetNames": ["vm"], "start": start, "end": "2031-01-01T00:00:00Z"}
    )
    assert "spec.start" in shop.refused("root", "create", "-f", "-", stdin=window)


def test_a_window_that_is_stored_all_the_same_is_named_in_an_event(shop: Shop) -> None:
    spec = {"assetNames": ["vm"], "start": "0000-12-18T16:00:00Z", "end": "0001-01-01T00:00:00Z"}
    window = json.dumps(document("MaintenanceWindow", "never", spec))
    shop.cluster.kubectl(
        "create", "-n", shop.namespace, "-f", "-", stdin=window, user="root", groups=BREAK_GLASS
    )

    def told() -> bool:
        events = json.loads(shop.kubectl("get", "events", "-o", "json").stdout)["items"]
        return any(e["reason"] == "Unreadable" and e["involvedObject"]["name"] == "never" for e in events)

    until(told, "an Event on the window")
    shop.held("work", "alice", asset="vm", ttl="1h")


def test_an_object_nested_1100_deep_is_fenced_like_any_other(town: Any, shop: Shop) -> None:
    """What the webhook for creations can't read it would let through, and a watch that ends at it sees no other."""
    cluster, _ = town
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(crd()))
    cluster.kubectl("wait", "crd/deeps.example.com", "--for=condition=Established")
    shop.does("root", "create", "-f", "-", stdin=deep_object("db1", 1))
    shop.stands_for("db", ("example.com/v1", "Deep", "db1"), ("example.com/v1", "Deep", "db2"))
    shop.held("work", "alice", asset="db", ttl="1h")
    shop.does("root", "create", "-f", "-", stdin=deep_object("free", 1100))
    assert "is locked through" in shop.refused("root", "create", "-f", "-", stdin=deep_object("db2", 1100))
    shop.stack.restart(Part.CONTROLLER)
    shop.kubectl("delete", "alk", "work", user="alice")
    until(lambda: not shop.stamps("deep/db1"), "the stamp comes off")


def nested_asset(name: str, depth: int) -> str:
    asset = document("Asset", name, {"metadata": {"a": "NESTED"}})
    return json.dumps(asset).replace('"NESTED"', "[" * depth + "]" * depth)


def deep_object(name: str, depth: int) -> str:
    body = {"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": name}, "spec": "NESTED"}
    return json.dumps(body).replace('"NESTED"', '{"a":' * depth + "1" + "}" * depth)


def crd() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Deep", "plural": "deeps", "singular": "deep"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "deeps.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
