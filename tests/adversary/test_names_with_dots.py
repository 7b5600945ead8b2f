"""mallory names an asset, a Lease and a namespace so that they might be taken for alice's."""

from __future__ import annotations

import json

from assetlock.core import names
from tests.adversary.conftest import Shop
from tests.cluster.conftest import lease, until


def test_an_asset_of_another_name_is_never_taken_for_alices(shop: Shop) -> None:
    shop.asset("vm.app-1", "one", capacity=2)
    shop.held("work", "alice", asset="vm.app-1", ttl="1h")
    shop.asset("app-1", "two")
    for name in ("asset.vm.app-1", "asset-1.vm.app-1"):
        body = lease("app-1", "mallory")
        body["metadata"]["name"] = name
        assert "must be named asset.app-1" in shop.refused("mallory", "create", "-f", "-", stdin=body)
    shop.does("mallory", "create", "-f", "-", stdin=lease("app-1", "mallory"))
    until(lambda: "app-1" in shop.stamps("configmap/two"), "mallory holds her own")
    told = shop.refused(
        "mallory", "patch", "configmap", "one", "--type=merge", '--patch={"data":{"value":"1"}}'
    )
    assert f"locked through asset vm.app-1 in namespace {shop.namespace}" in told
    assert shop.patched("alice", "configmap/one", {"data": {"value": "1"}})


def test_scaling_what_an_asset_with_dots_holds_is_refused_in_its_name(shop: Shop) -> None:
    shop.kubectl("create", "deployment", "web", "--image=none", "--replicas=0")
    shop.stands_for("web.eu.shop", ("apps/v1", "Deployment", "web"))
    shop.held("work", "alice", asset="web.eu.shop", ttl="1h")
    told = shop.refused("mallory", "scale", "deployment", "web", "--replicas=3")
    assert f"locked through asset web.eu.shop in namespace {shop.namespace}" in told
    shop.does("alice", "scale", "deployment", "web", "--replicas=1")
    space = json.loads(shop.kubectl("get", "namespace", shop.namespace, "--output=json").stdout)
    assert names.namespace_fence_key("web.eu.shop", shop.namespace) in space["metadata"]["annotations"]
