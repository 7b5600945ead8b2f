"""Names and ids that are made up so that a stamp would say something else than who holds the lock."""

from __future__ import annotations

import json

import pytest

from assetlock.core import names
from tests.adversary.conftest import Shop
from tests.cluster.conftest import document, lease, until

UID = "427171a0-eba9-4acd-bc5c-2d150f43b02a"


@pytest.fixture
def delegating(shop: Shop) -> Shop:
    """mallory may lock in the name of others."""
    verbs = ("--verb=delegate,maintain", "--resource=assets.assetlock.dev")
    shop.kubectl("create", "role", "delegate", *verbs)
    shop.kubectl("create", "rolebinding", "delegate", "--role=delegate", "--user=mallory")
    return shop


@pytest.mark.parametrize("word", ["group", "@group", "maintenance", "-", f"{UID} x", f"{UID}\n7 -"])
@pytest.mark.parametrize(
    "bound", [("Pod", "podUID"), ("Credential", "credentialId")], ids=["pod", "credential"]
)
def test_a_lock_for_a_made_up_pod_opens_the_object_to_no_group(
    delegating: Shop, word: str, bound: tuple[str, str]
) -> None:
    bind_to, field = bound
    spec = {"assetName": "vm", "bindTo": bind_to, "holder": {"username": "system:authenticated", field: word}}
    told = delegating.refused("mallory", "create", "-f", "-", stdin=document("AssetLock", "forged", spec))
    assert f"spec.holder.{field}" in told


def test_a_namespace_of_a_maintainer_makes_no_line_of_its_own(delegating: Shop) -> None:
    subject = {"kind": "ServiceAccount", "name": "x", "namespace": "y\n7 @group system:authenticated"}
    spec = {"assetName": "vm", "mode": "Maintenance", "ttl": "1h", "maintainers": [subject]}
    told = delegating.refused("mallory", "create", "-f", "-", stdin=document("AssetLock", "forged", spec))
    assert "a namespace is a DNS label" in told


def test_made_up_ids_of_somebody_impersonated_match_no_line(delegating: Shop) -> None:
    """The words for groups and for who closed the asset, sent as if they were a pod's UID."""
    delegating.does(
        "mallory",
        *("create", "-f", "-"),
        stdin=document(
            "AssetLock",
            "closed",
            {
                "assetName": "vm",
                "mode": "Maintenance",
                "ttl": "1h",
                "reason": "disks",
                "maintainers": [{"kind": "Group", "name": "dba"}],
            },
        ),
    )
    delegating.wait("alk/closed", "condition=Acquired")
    [stamp] = delegating.stamps("configmap/app").values()
    lines = stamp.split("\n")[1:]
    assert [line.partition(" ")[2] for line in lines] == ["@maintenance mallory: disks", "@group dba"]
    for word in ("@maintenance", "@group", "maintenance", "group"):
        for name in ("mallory: disks", "dba"):
            for claim in ("pod-uid", "credential-id"):
                liar = delegating.impersonating(name, **{claim: word})
                delegating.create(_may_edit(name), check=False)
                assert "under maintenance" in delegating.refused(
                    liar, "label", "configmap", "app", "evil=true"
                )


def test_a_reason_moves_no_cursor_of_who_is_refused(shop: Shop) -> None:
    shop.held("work", "alice", asset="vm", ttl="1h", reason="\x1b[1A\x1b[2Kconfigmap/app patched\x1b[8m")
    told = shop.refused("mallory", "label", "configmap", "app", "a=b")
    assert "[2Kconfigmap/app patched" in told
    assert "\x1b" not in told
    messages = [c["message"] for c in shop.get("alk", "work")["status"]["conditions"]]
    events = shop.kubectl("get", "events.events.k8s.io", "-o", "jsonpath={.items[*].note}").stdout
    holders = shop.get("ast", "vm")["status"]["holders"]
    assert "\x1b" not in json.dumps([messages, holders], ensure_ascii=False) + events


@pytest.mark.parametrize("name", ["a" * 1025, "eve\x1b[8m", "eve\n- bob"], ids=["long", "escape", "line"])
def test_who_has_a_name_that_fits_on_no_line_locks_nothing(shop: Shop, name: str) -> None:
    masters = ("system:masters",)
    for body in (lease("vm", "job"), document("AssetLock", "mine", {"assetName": "vm"})):
        try:
            done = shop.cluster.kubectl(
                *("create", "-n", shop.namespace, "-f", "-"),
                user=name,
                groups=masters,
                stdin=json.dumps(body),
                check=False,
            )
        except (ValueError, OSError):
            pytest.skip("no client can send such a name")
        assert done.returncode != 0, done.stdout
    shop.held("work", "alice", asset="vm")


def test_a_holder_identity_moves_no_cursor(shop: Shop) -> None:
    told = shop.refused("eddie", "create", "-f", "-", stdin=lease("vm", "x\x1b[2K"))
    assert "control characters" in told


def test_a_holder_with_a_name_of_1024_characters_is_served(shop: Shop) -> None:
    name, masters = "a" * 1024, ("system:masters",)
    create = ("create", "-n", shop.namespace, "-f", "-")
    shop.cluster.kubectl(*create, user=name, groups=masters, stdin=json.dumps(lease("vm", "job")))
    key = "jsonpath={.metadata.annotations.assetlock\\.dev/token}=1"
    shop.wait("lease/asset.vm", key)
    until(lambda: bool(shop.stamps("configmap/app")), "the target is stamped")
    told = shop.refused("mallory", "label", "configmap", "app", "a=b")
    assert "a" * 100 + "…" in told
    assert len(told) < 1000
    write = ("label", "-n", shop.namespace, "configmap", "app", "mine=true")
    shop.cluster.kubectl(*write, user=name, groups=masters)
    assert shop.get("lease", "asset.vm")["metadata"]["annotations"][names.OWNER_ANNOTATION] == f"- {name}"


def _may_edit(user: str) -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "edit-" + "".join(c for c in user if c.isalpha())},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
