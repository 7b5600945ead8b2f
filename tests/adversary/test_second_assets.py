"""mallory makes an Asset of her own over what alice holds, to shut her out."""

from __future__ import annotations

import json

import pytest

from tests.adversary.conftest import Shop
from tests.cluster.conftest import document, until


@pytest.mark.parametrize("on_conflict", ["Reject", "Warn"])
def test_alice_goes_on_writing_and_mallory_is_told_why_she_has_nothing(
    locked: Shop, on_conflict: str
) -> None:
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    locked.create(document("Asset", "mine", {"targets": [target], "onConflict": on_conflict}))
    locked.lock("mine", "mallory", asset="mine", ttl="24h", wait="1h")
    until(lambda: "through asset vm" in json.dumps(locked.get("alk", "mine")), "she is told")
    for number in range(3):
        assert locked.patched("alice", "cm/app", {"data": {"value": f"{number}"}})
    assert locked.get("configmap", "app")["data"]["value"] == "2"
    assert set(locked.stamps("cm/app")) == {"vm"}
