"""Somebody who reaches the webhooks' port, without credentials; and reviews of writes that are never made."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from assetlock.admission.upkeep.callers import LIFE, SECRET, Callers
from assetlock.cli.stack import Part
from assetlock.core import names
from assetlock.install import install
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from tests.adversary.conftest import Shop
from tests.cluster.conftest import BREAK_GLASS, until

VETO = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
  validations: [{expression: "!has(object.data.veto)", message: vetoed}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
"""


def review(shop: Shop, user: str, *groups: str, operation: str = "UPDATE") -> bytes:
    """What the API server would ask about a write to the target."""
    target = shop.get("configmap", "app")
    request = {
        "uid": "forged",
        "operation": operation,
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "namespace": shop.namespace,
        "name": "app",
        "userInfo": {"username": user, "groups": list(groups)},
        "object": target | {"data": {"value": "other"}},
        "oldObject": target,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


def sent(shop: Shop, path: str, data: bytes) -> int:
    """What a webhook answers to somebody who shows no certificate."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(
        shop.stack.url(Part.ADMISSION, path), data, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10, context=unverified) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def recorded(shop: Shop) -> set[str]:
    """What the asset tells of writes."""
    status = shop.get("asset", "vm")["status"]
    return {field for field in ("lastPatchedBy", "brokenGlass") if status.get(field)}


def test_who_is_not_the_api_server_is_not_listened_to(locked: Shop) -> None:
    for path in ("fence", "namespaces", "assets", "leases", "creations"):
        for before in ("", "/caller-", f"/caller-{'x' * 43}"):
            assert sent(locked, f"{before}/{path}", review(locked, "alice")) == 404


def test_a_forged_review_keeps_no_lock_alive_and_forges_no_record(shop: Shop) -> None:
    shop.held("work", "alice", asset="vm", ttl="8s")
    deadline = time.monotonic() + 20
    while shop.get("alk", "work")["status"]["state"] == "Held":
        assert time.monotonic() < deadline, "kept alive"
        sent(shop, "/fence", review(shop, "alice"))
        sent(shop, "/fence", review(shop, "ceo@example.com", "assetlock:break-glass"))
    assert recorded(shop) == set()


def test_a_write_of_the_holder_that_is_never_made_changes_nothing(shop: Shop) -> None:
    """Another policy refuses it after our webhook has admitted it, as it would a dry run of somebody's making."""
    shop.cluster.kubectl("apply", "-f", "-", stdin=VETO.replace("NAME", shop.namespace))
    until(lambda: not shop.patched("alice", "cm/app", {"data": {"veto": "x"}}), "vetoed")
    shop.kubectl(
        "patch", "cm/app", "--type=json", '--patch=[{"op":"remove","path":"/data/veto"}]', check=False
    )
    shop.held("work", "alice", asset="vm", ttl="8s")
    deadline = time.monotonic() + 20
    while shop.get("alk", "work")["status"]["state"] == "Held":
        assert time.monotonic() < deadline, "kept alive"
        shop.patched("alice", "cm/app", {"data": {"veto": "x"}})
        glass = ("patch", "cm/app", "-n", shop.namespace, "--type=merge", '--patch={"data":{"veto":"y"}}')
        shop.cluster.kubectl(*glass, user="root", groups=BREAK_GLASS, check=False)
    assert recorded(shop) == set()


def test_a_write_that_is_made_is_recorded(locked: Shop) -> None:
    assert locked.patched("alice", "cm/app", {"data": {"value": "1"}})
    glass = ("patch", "cm/app", "-n", locked.namespace, "--type=merge", '--patch={"data":{"value":"2"}}')
    locked.cluster.kubectl(*glass, user="root", groups=BREAK_GLASS)
    until(lambda: recorded(locked) == {"lastPatchedBy", "brokenGlass"}, "both are recorded")


def test_nobody_with_ordinary_rights_can_read_the_path(shop: Shop) -> None:
    for user in ("eddie", "mallory", "alice"):
        for what in (
            ("secret", SECRET, "-n", names.OPERATOR_NAMESPACE),
            ("mutatingwebhookconfiguration", "assetlock"),
        ):
            done = shop.cluster.kubectl("get", *what, user=user, check=False)
            assert "forbidden" in done.stderr


@pytest.fixture
def api(shop: Shop) -> Iterator[Api]:
    yield Api(HttpTransport(load_config(shop.cluster.kubeconfig)))


def called(shop: Shop) -> set[str]:
    """What the paths begin with that the API server calls."""
    found = shop.cluster.kubectl("get", "mutatingwebhookconfiguration", "assetlock", "-o", "json").stdout
    webhooks: list[dict[str, Any]] = json.loads(found)["webhooks"]
    return {webhook["clientConfig"]["url"].split("/")[3] for webhook in webhooks}


def test_another_secret_comes_into_use_without_a_refusal(shop: Shop, api: Api) -> None:
    """What fails closed must go on: the running process has not heard of the new secret when it is first called."""
    before = called(shop)

    async def changed() -> None:
        later = datetime.datetime.now(datetime.UTC) + LIFE + datetime.timedelta(days=1)
        await Callers(api, now=lambda: later).refresh()
        await api.close()

    asyncio.run(changed())
    for number in range(20):
        shop.lock(f"l{number}", "alice", asset="vm")
    assert called(shop).isdisjoint(before)


def test_webhooks_that_are_applied_again_find_their_path(shop: Shop, api: Api) -> None:
    """For the moment in between the API server calls nobody, and what fails closed is refused."""
    before = called(shop)

    async def again() -> None:
        await install(api, webhook_url=shop.stack.url(Part.ADMISSION, ""))
        await api.close()

    asyncio.run(again())
    until(lambda: called(shop) == before, "the path is back")
    until(
        lambda: shop.lock("work", "alice", asset="vm", check=False).returncode == 0, "locks can be asked for"
    )
