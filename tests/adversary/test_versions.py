"""Custom resources in two versions, converted by nobody: what one does not know, a write through it drops."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.adversary.conftest import Shop
from tests.cluster.conftest import document, until


class Boxes:
    """A kind whose objects are stored in v1, and served in v1beta1 too, which knows less."""

    def __init__(self, shop: Shop) -> None:
        self.group = f"{uuid.uuid4().hex[:6]}.example.com"
        self._shop = shop
        shop.cluster.kubectl("create", "-f", "-", stdin=json.dumps(self._definition()))
        shop.cluster.kubectl("wait", f"crd/boxes.{self.group}", "--for=condition=Established")
        names = ("--clusterrole=boxes-" + self.group, "--group=system:authenticated")
        shop.cluster.kubectl(
            "create", "clusterrole", f"boxes-{self.group}", "--verb=*", f"--resource=boxes.{self.group}"
        )
        shop.cluster.kubectl("create", "clusterrolebinding", f"boxes-{self.group}", *names)
        box = {"apiVersion": f"{self.group}/v1", "kind": "Box", "metadata": {"name": "b1"}}
        until(
            lambda: shop.create({**box, "spec": {"a": 1, "b": "precious"}}, check=False).returncode == 0,
            "a box",
        )
        target = {"apiVersion": f"{self.group}/v1beta1", "kind": "Box", "name": "b1"}
        shop.create(document("Asset", "box", {"targets": [target]}))

    def stops_serving_the_old_version(self) -> None:
        patch = '[{"op":"replace","path":"/spec/versions/0/served","value":false}]'
        self._shop.cluster.kubectl("patch", "crd", f"boxes.{self.group}", "--type=json", f"--patch={patch}")
        old = ("get", "--raw", f"/apis/{self.group}/v1beta1/namespaces/{self._shop.namespace}/boxes/b1")
        until(lambda: self._shop.cluster.kubectl(*old, check=False).returncode != 0, "no longer served")

    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self._shop.get(f"boxes.v1.{self.group}", "b1")["spec"]
        return found

    def written(self, user: str) -> bool:
        return self._shop.patched(user, f"boxes.v1.{self.group}/b1", {"spec": {"by": user}})

    def _definition(self) -> dict[str, Any]:
        def version(name: str, *fields: str, storage: bool) -> dict[str, Any]:
            known = {"a": {"type": "integer"}} | {field: {"type": "string"} for field in fields}
            spec = {"type": "object", "properties": known}
            schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
            return {"name": name, "served": True, "storage": storage, "schema": schema}

        names = {"kind": "Box", "plural": "boxes", "singular": "box"}
        versions = [version("v1beta1", "by", storage=False), version("v1", "b", "by", storage=True)]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"boxes.{self.group}"},
            "spec": {"group": self.group, "scope": "Namespaced", "names": names, "versions": versions},
        }


def test_a_stamp_costs_no_data(shop: Shop) -> None:
    boxes = Boxes(shop)
    shop.held("work", "alice", asset="box", ttl="1h")
    assert boxes.spec() == {"a": 1, "b": "precious"}
    shop.kubectl("delete", "alk", "work", user="alice")
    until(lambda: not shop.stamps(f"boxes.v1.{boxes.group}/b1"), "the stamp is gone")
    assert boxes.spec() == {"a": 1, "b": "precious"}


def test_who_holds_is_who_the_stamp_names_when_the_named_version_is_no_longer_served(shop: Shop) -> None:
    boxes = Boxes(shop)
    shop.held("first", "alice", asset="box", ttl="1h")
    shop.lock("second", "mallory", asset="box", wait="5m", ttl="1h")
    boxes.stops_serving_the_old_version()
    shop.kubectl("delete", "alk", "first", user="alice")
    shop.wait("alk/second", "condition=Acquired", timeout=60)
    assert boxes.written("mallory")
    assert not boxes.written("alice")
    shop.kubectl("delete", "alk", "second", user="mallory")
    until(lambda: boxes.written("root"), "it is free", seconds=30)
    until(lambda: not shop.stamps(f"boxes.v1.{boxes.group}/b1"), "the stamp is gone")


def test_an_asset_may_name_a_version_that_is_not_served_any_more(shop: Shop) -> None:
    boxes = Boxes(shop)
    boxes.stops_serving_the_old_version()
    shop.held("work", "alice", asset="box", ttl="1h")
    assert not boxes.written("mallory")
    assert boxes.written("alice")
