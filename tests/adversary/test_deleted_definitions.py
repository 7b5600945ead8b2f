"""root deletes the definition of a custom resource that alice has locked: the objects would go without admission."""

from __future__ import annotations

from tests.adversary.conftest import Shop
from tests.adversary.test_versions import Boxes
from tests.cluster.conftest import BREAK_GLASS


def test_a_definition_stays_while_somebody_else_holds_an_object_of_its_kind(shop: Shop) -> None:
    boxes = Boxes(shop)
    shop.held("work", "alice", asset="box", ttl="1h")
    command = ("delete", "crd", f"boxes.{boxes.group}", "--wait=false")
    refused = shop.cluster.kubectl(*command, user="root", check=False)
    assert "is locked through asset box" in refused.stderr
    assert boxes.spec() == {"a": 1, "b": "precious"}
    shop.cluster.kubectl(*command, user="root", groups=BREAK_GLASS)


def test_a_definition_of_which_nobody_holds_anything_may_go(shop: Shop) -> None:
    boxes = Boxes(shop)
    shop.cluster.kubectl("delete", "crd", f"boxes.{boxes.group}", "--wait=false", user="root")
