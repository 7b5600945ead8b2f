"""root writes through subresources that carry the whole object, and through a Binding, whose metadata is copied."""

from __future__ import annotations

import base64
import json
import subprocess
import uuid
from typing import Any

import pytest

from assetlock.core import names
from tests.adversary.conftest import Shop
from tests.cluster.conftest import BREAK_GLASS, until

MARKS = {"labels": None, "annotations": None}


def raw(
    shop: Shop, user: str, verb: str, path: str, body: dict[str, Any]
) -> subprocess.CompletedProcess[str]:
    return shop.tries(user, verb, "--raw", path, "-f", "-", stdin=body)


def notes(shop: Shop) -> str:
    """What the Events there say."""
    every = "jsonpath={range .items[*]}{.reason} {.note}{'\\n'}{end}"
    told: str = shop.kubectl("get", "events.events.k8s.io", "-o", every).stdout
    return told


def stripped(thing: dict[str, Any]) -> dict[str, Any]:
    """The object without anything of ours."""
    kept = {key: value for key, value in thing["metadata"].items() if key not in MARKS}
    return {**thing, "metadata": kept}


def forged(thing: dict[str, Any], token: str = "99") -> dict[str, Any]:
    """The object with root in each stamp."""
    meta = thing["metadata"]
    stamps = {
        k: f"{meta['uid']}\n{token} - root" for k in meta["annotations"] if k.endswith(names.STAMP_SUFFIX)
    }
    return {**thing, "metadata": {**meta, "annotations": {**meta["annotations"], **stamps}}}


def is_carrier(resource: dict[str, Any], kinds: dict[str, str]) -> bool:
    """Whether it is a subresource that is written as the object itself is."""
    parent, slash, _ = resource["name"].partition("/")
    return (
        bool(slash)
        and resource["kind"] == kinds.get(parent)
        and bool({"update", "patch"} & {*resource["verbs"]})
    )


@pytest.fixture
def space(shop: Shop) -> Shop:
    """alice holds a Namespace."""
    name = f"{shop.namespace}-target"
    shop.kubectl("create", "namespace", name)
    shop.stands_for("space", ("v1", "Namespace", name))
    shop.held("work", "alice", asset="space", ttl="1h")
    return shop


def test_nothing_of_a_namespace_is_changed_by_finalize(space: Shop) -> None:
    name = f"{space.namespace}-target"
    now = space.get("namespace", name)
    path = f"/api/v1/namespaces/{name}/finalize"
    for body in (stripped(now), forged(now), forged(now, "9" * 30), {**now, "spec": {"finalizers": []}}):
        assert "Locked" in raw(space, "root", "replace", path, body).stderr
    after = space.get("namespace", name)
    assert (after["metadata"]["annotations"], after["spec"]) == (now["metadata"]["annotations"], now["spec"])
    space.refused("root", "delete", "namespace", name, "--wait=false")
    space.kubectl("delete", "alk", "work")
    until(lambda: not space.stamps(f"namespace/{name}"), "the namespace is freed")
    space.does("root", "delete", "namespace", name, "--timeout=60s")


def test_a_locked_namespace_that_is_going_is_finalized(space: Shop) -> None:
    """By the namespace controller, which writes to finalize what it may not write otherwise."""
    name = f"{space.namespace}-target"
    space.cluster.kubectl("delete", "namespace", name, "--timeout=60s", user="janitor", groups=BREAK_GLASS)


def test_a_locked_request_is_approved_by_nobody_else(shop: Shop) -> None:
    name = f"req-{uuid.uuid4().hex[:8]}"
    key = subprocess.run(
        ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=x"],
        capture_output=True,
        check=True,
    ).stdout
    spec = {
        "request": base64.b64encode(key).decode(),
        "signerName": "example.com/signer",
        "usages": ["client auth"],
    }
    shop.create(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": spec,
        }
    )
    shop.stands_for("req", ("certificates.k8s.io/v1", "CertificateSigningRequest", name))
    shop.held("work", "alice", asset="req", ttl="1h")
    assert "Locked" in shop.refused("root", "certificate", "approve", name)
    now = shop.get("csr", name)
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval"
    for body in (stripped(now), forged(now)):
        assert "Locked" in raw(shop, "root", "replace", path, body).stderr
    assert "conditions" not in shop.get("csr", name)["status"]
    assert shop.stamps(f"csr/{name}")


@pytest.fixture
def pod(shop: Shop) -> dict[str, Any]:
    """A pod that no scheduler has seen, which alice holds."""
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "none"}], "schedulerName": "none"},
    }
    shop.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    shop.create(body)
    shop.stands_for("pod", ("v1", "Pod", "p"), guardedSubresources=["proxy"])
    shop.held("work", "alice", asset="pod", ttl="1h")
    return shop.get("pod", "p")


def binding(**metadata: object) -> dict[str, Any]:
    target = {"kind": "Node", "name": "n1"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", **metadata}, "target": target}


def test_a_binding_brings_nothing_of_ours_onto_the_pod(shop: Shop, pod: dict[str, Any]) -> None:
    path = f"/api/v1/namespaces/{shop.namespace}/pods/p/binding"
    stamp = {names.stamp_key("pod", shop.namespace): f"{pod['metadata']['uid']}\n99 - root"}
    for metadata in ({"annotations": stamp}, {"labels": {names.FENCED_LABEL: "false"}}):
        told = raw(shop, "root", "create", path, binding(**metadata)).stderr
        assert "a Binding carries no label and no annotation of assetlock.dev" in told
    assert raw(shop, "root", "create", path, binding(annotations={"note": "mine"})).returncode == 0
    [line] = shop.stamps("pod/p").values()
    assert line.endswith(" - alice")


def test_a_proxy_into_a_pod_is_closed_where_the_asset_says_so(shop: Shop, pod: dict[str, Any]) -> None:
    for name in ("p", "p:80", "http:p:80"):
        path = f"/api/v1/namespaces/{shop.namespace}/pods/{name}/proxy/"
        assert f"proxy of pods {name}" in shop.refused("root", "get", "--raw", path)
        assert "is locked" not in shop.refused("alice", "get", "--raw", path)


def test_every_subresource_that_carries_the_object_is_behind_the_fence(shop: Shop) -> None:
    """Found by discovery; those that exist on a ConfigMap's neighbours are tried above."""
    groups = json.loads(shop.kubectl("get", "--raw", "/apis").stdout)["groups"]
    paths = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    carriers = set()
    for path in paths:
        resources = json.loads(shop.kubectl("get", "--raw", path).stdout)["resources"]
        kinds = {r["name"]: r["kind"] for r in resources if "/" not in r["name"]}
        carriers |= {r["name"] for r in resources if is_carrier(r, kinds)}
    assert {"namespaces/finalize", "certificatesigningrequests/approval", "pods/resize"} <= carriers
    policy = json.loads(
        shop.kubectl("get", "validatingadmissionpolicy", names.TARGETS_POLICY, "-o", "json").stdout
    )
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    covered = {resource for rule in rules if "UPDATE" in rule["operations"] for resource in rule["resources"]}
    assert covered == {"*/*"}


def test_a_stamp_that_was_forged_by_break_glass_is_put_right_and_told(locked: Shop) -> None:
    uid = locked.metadata("configmap/app")["uid"]
    key = names.stamp_key("vm", locked.namespace)
    for token in ("99", "9" * 30):
        patch = json.dumps({"metadata": {"annotations": {key: f"{uid}\n{token} - root"}}})
        locked.cluster.kubectl(
            *("patch", "configmap", "app", "-n", locked.namespace, "--type=merge", f"--patch={patch}"),
            user="root",
            groups=BREAK_GLASS,
        )
        until(lambda: locked.stamps("configmap/app")["vm"].endswith(" - alice"), "the stamp is put right")
    until(lambda: "StampForged" in notes(locked), "it is told")
    assert "ConfigMap app named root with token 99, which was never given out" in notes(locked)
    locked.refused("root", "label", "configmap", "app", "a=b")
    locked.does("alice", "delete", "alk", "work")
    locked.held("next", "mallory", asset="vm")
    assert locked.get("alk", "next")["status"]["fencingToken"] == 2
