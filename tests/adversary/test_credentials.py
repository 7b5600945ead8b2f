"""Build 8 runs under the account of build 7, which holds the lock with ``bindTo: Credential``."""

from __future__ import annotations

import base64
import json
import pathlib

import pytest

from assetlock.cli.stack import Part
from tests.adversary.conftest import Shop
from tests.cluster.conftest import document, lease, until

EVIL = ("patch", "configmap", "app", "--type=merge", '--patch={"data":{"value":"evil"}}')
WRITE = ("patch", "configmap", "app", "--type=merge", '--patch={"data":{"value":"8"}}')


def credential(kubeconfig: pathlib.Path) -> str:
    """The id of the token in it, as anybody can read it there."""
    token = json.loads(kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def ask(shop: Shop, who: pathlib.Path, name: str = "build-7", **spec: object) -> None:
    body = document("AssetLock", name, {"assetName": "vm", "bindTo": "Credential", "ttl": "1h", **spec})
    shop.does(who, "create", "-f", "-", stdin=body)


def move(shop: Shop, who: pathlib.Path, to: str, name: str = "build-7") -> str:
    """A patch that moves the lock to another credential; gives the refusal, or nothing."""
    patch = json.dumps({"spec": {"holder": {"credentialId": to}}})
    done = shop.tries(who, "patch", f"alk/{name}", "--type=merge", f"--patch={patch}")
    return done.stderr if done.returncode else ""


@pytest.fixture
def seven(shop: Shop) -> pathlib.Path:
    """Build 7, which holds the lock."""
    run = shop.run_of("pipeline", "7")
    shop.kubectl("create", "role", "assets", "--verb=patch,delete", "--resource=assets.assetlock.dev")
    account = f"{shop.namespace}:pipeline"
    shop.kubectl("create", "rolebinding", "assets", "--role=assets", f"--serviceaccount={account}")
    ask(shop, run)
    shop.wait("alk/build-7", "condition=Acquired")
    return run


def test_the_same_account_with_another_token_is_a_stranger(shop: Shop, seven: pathlib.Path) -> None:
    eight, id_of_seven = shop.run_of("pipeline", "8"), credential(seven)
    told = shop.refused(eight, *EVIL)
    assert f"with credential {id_of_seven[:19]}…" in told
    assert id_of_seven not in told
    before = shop.get("lease", "asset.vm")["spec"]["renewTime"]
    for command in (
        ("delete", "alk/build-7"),
        ("patch", "alk/build-7", "--type=merge", '--patch={"spec":{"ttl":"2h"}}'),
        ("delete", "lease", "asset.vm"),
        ("patch", "asset", "vm", "--type=merge", '--patch={"spec":{"targets":[]}}'),
        ("delete", "asset", "vm"),
    ):
        shop.refused(eight, *command)
    assert shop.get("lease", "asset.vm")["spec"]["renewTime"] == before
    shop.does(seven, *WRITE)
    until(lambda: shop.get("lease", "asset.vm")["spec"]["renewTime"] != before, "build 7 extends its lock")
    shop.does(seven, "delete", "alk/build-7")


def test_the_policy_alone_tells_them_apart(shop: Shop, seven: pathlib.Path) -> None:
    eight = shop.run_of("pipeline", "8")
    shop.stack.kill(Part.ADMISSION)
    try:
        assert f"with credential {credential(seven)[:19]}…" in shop.refused(eight, *EVIL)
        assert "Locked" in shop.refused(eight, "label", "asset", "vm", "a=b")
        shop.does(seven, *WRITE)
        shop.refused(eight, "delete", "alk/build-7")
        shop.does(seven, "delete", "alk/build-7")
    finally:
        shop.stack.restart(Part.ADMISSION)


def test_build_8_waits_its_turn_and_gets_a_lock_of_its_own(shop: Shop, seven: pathlib.Path) -> None:
    eight = shop.run_of("pipeline", "8")
    ask(shop, eight, "build-8", wait="1h")
    shop.does(seven, "delete", "alk/build-7")
    shop.wait("alk/build-8", "condition=Acquired")
    shop.refused(seven, *EVIL)
    shop.does(eight, *WRITE)


def test_only_the_present_credential_moves_the_lock_to_the_next_one(shop: Shop, seven: pathlib.Path) -> None:
    rotated, eight = shop.run_of("pipeline", "7b"), shop.run_of("pipeline", "8")
    verbs = ("--verb=unlock,delegate", "--resource=assets.assetlock.dev")
    shop.kubectl("create", "role", "ops", *verbs)
    shop.kubectl("create", "rolebinding", "ops", "--role=ops", "--user=mallory")
    mallorys = json.dumps({"spec": {"holder": {"credentialId": credential(eight)}}})
    assert "moves it to another one" in shop.refused(
        "mallory", "patch", "alk/build-7", "--type=merge", f"--patch={mallorys}"
    )
    assert move(shop, eight, credential(eight))
    token = shop.get("alk", "build-7")["status"]["fencingToken"]
    assert move(shop, seven, credential(rotated)) == ""
    until(lambda: shop.tries(rotated, *WRITE).returncode == 0, "the rotated token may write")
    shop.refused(seven, *EVIL)
    until(
        lambda: shop.get("ast", "vm")["status"]["holders"][0]["credentialId"] == credential(rotated),
        "the asset names the new one",
    )
    owner = f"{credential(rotated)} system:serviceaccount:{shop.namespace}:pipeline"
    annotations = lambda: shop.get("lease", "asset.vm")["metadata"]["annotations"]  # noqa: E731
    until(lambda: annotations()["assetlock.dev/owner"] == owner, "the Lease names the new one")
    assert move(shop, seven, credential(seven))
    lock = shop.get("alk", "build-7")
    assert (lock["status"]["state"], lock["status"]["fencingToken"]) == ("Held", token)
    before = shop.get("lease", "asset.vm")["spec"]["renewTime"]
    shop.does(rotated, "label", "configmap", "app", "more=1")
    until(
        lambda: shop.get("lease", "asset.vm")["spec"]["renewTime"] != before, "the new one extends the lock"
    )
    shop.does(rotated, "delete", "alk/build-7")


def test_nothing_else_of_the_holder_moves(shop: Shop, seven: pathlib.Path) -> None:
    for holder in (
        {"username": "mallory"},
        {"podName": "x"},
        {"credentialId": None},
        {"credentialId": "no id"},
    ):
        patch = json.dumps({"spec": {"holder": holder}})
        shop.refused(seven, "patch", "alk/build-7", "--type=merge", f"--patch={patch}")


def test_a_credential_of_another_is_not_claimed(shop: Shop) -> None:
    seven, eight = shop.run_of("pipeline", "7"), shop.run_of("pipeline", "8")
    user = f"system:serviceaccount:{shop.namespace}:pipeline"
    holder = {"username": user, "credentialId": credential(seven)}
    spec = {"assetName": "vm", "bindTo": "Credential", "holder": holder}
    told = shop.refused(eight, "create", "-f", "-", stdin=document("AssetLock", "forged", spec))
    assert "spec.holder must be" in told


def test_a_lease_is_bound_to_a_credential_too(shop: Shop) -> None:
    seven, eight = shop.run_of("pipeline", "7"), shop.run_of("pipeline", "8")
    body = lease("vm", "build")
    body["metadata"]["annotations"] = {"assetlock.dev/bind-to": "Credential"}
    shop.does(seven, "create", "-f", "-", stdin=body)
    until(lambda: bool(shop.stamps("configmap/app")), "the target is stamped")
    shop.refused(eight, *EVIL)
    shop.refused(eight, "delete", "lease", "asset.vm")
    shop.does(seven, *WRITE)
    shop.does(seven, "delete", "lease", "asset.vm")


def test_a_certificate_is_a_credential(shop: Shop) -> None:
    body = document("AssetLock", "work", {"assetName": "vm", "bindTo": "Credential"})
    shop.does("alice", "create", "-f", "-", stdin=body)
    shop.wait("alk/work", "condition=Acquired")
    assert shop.get("alk", "work")["spec"]["holder"]["credentialId"].startswith("X509SHA256=")
    told = shop.refused(shop.impersonating("alice"), *EVIL)
    assert "with credential X509SHA256=" in told
    shop.does("alice", *WRITE)


def test_who_has_no_id_is_told_so(shop: Shop) -> None:
    body = document("AssetLock", "work", {"assetName": "vm", "bindTo": "Credential"})
    told = shop.refused(shop.impersonating("alice"), "create", "-f", "-", stdin=body)
    assert "Credential needs a holder with a credentialId" in told
