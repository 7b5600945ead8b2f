"""A write that was admitted for the holder, and is still on its way to the store when the lock has gone on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
from collections.abc import Callable, Iterator

import pytest
from tests.cluster.conftest import Operated, operator_in_a_cluster, until
from tests.cluster.matrix.cells import Object, Request
from tests.cluster.races import controllers
from tests.cluster.races.gates import HoldingWebhook, holding_webhook

from assetlock.cli.stack import Part, Stack
from assetlock.dev import ControlPlane
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import CONFIG_MAPS
from assetlock.kube.transport import Reply


def _merge_patch(path: str, now: Object) -> Request:
    return Request("PATCH", path, {"data": {"value": "late"}}, "application/merge-patch+json")


def _json_patch(path: str, now: Object) -> Request:
    steps = [{"op": "replace", "path": "/data/value", "value": "late"}]
    return Request("PATCH", path, steps, "application/json-patch+json")


def _forced_apply(path: str, now: Object) -> Request:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"value": "late"}}
    params = {"fieldManager": "late", "force": "true"}
    return Request("PATCH", path, body, "application/apply-patch+yaml", params)


def _put(path: str, now: Object) -> Request:
    body = {**now, "data": {"value": "late"}}
    del body["metadata"]["resourceVersion"]
    return Request("PUT", path, body)


def _delete(path: str, now: Object) -> Request:
    return Request("DELETE", path)


def _delete_collection(path: str, now: Object) -> Request:
    return Request("DELETE", path.rpartition("/")[0], params={"fieldSelector": "metadata.name=app"})


WRITES = (_merge_patch, _json_patch, _forced_apply, _put, _delete, _delete_collection)
Write = Callable[[str, Object], Request]
each_write = pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__.strip("_"))


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, Stack]]:
    with operator_in_a_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def without_stamps(operator_cluster: tuple[ControlPlane, Stack]) -> None:
    """From here on the operator's core lacks the rule that stamps targets."""
    cluster, _ = operator_cluster
    cluster.remove_process(Part.CONTROLLER)
    controllers.start(cluster, module="tests.cluster.races.unstamping")


@pytest.fixture
def gate(operated: Operated) -> Iterator[HoldingWebhook]:
    """Holds alice's write to a ConfigMap after the fence has decided, before it is committed."""
    with holding_webhook(operated.cluster) as (webhook, url):
        operated.create(_configuration(operated, url))
        yield webhook
        operated.kubectl("delete", "validatingwebhookconfiguration", f"hold-{operated.namespace}")


@each_write
def test_it_does_not_commit_after_the_next_holder_is_announced(
    operated: Operated, gate: HoldingWebhook, write: Write
) -> None:
    with _alice_writes_while_bob_gets_the_lock(operated, gate, write) as reply:
        gate.latch.let_go()
        answered = reply.result(60)
    assert answered.status == 423, answered.body
    assert "bob" in json.loads(answered.body)["message"]
    assert operated.get("configmap", "app")["data"] == {"value": "0"}


@each_write
@pytest.mark.usefixtures("without_stamps")
def test_it_would_commit_without_the_stamp(operated: Operated, gate: HoldingWebhook, write: Write) -> None:
    with _alice_writes_while_bob_gets_the_lock(operated, gate, write) as reply:
        gate.latch.let_go()
        answered = reply.result(60)
    assert answered.status == 200, answered.body
    left = operated.kubectl(
        "get", "configmap", "app", "--ignore-not-found", "--output=jsonpath={.data.value}"
    )
    assert left.stdout in ("late", "")


@contextlib.contextmanager
def _alice_writes_while_bob_gets_the_lock(
    operated: Operated, gate: HoldingWebhook, write: Write
) -> Iterator[concurrent.futures.Future[Reply]]:
    operated.asset("vm-1", "app")
    until(lambda: _is_consulted(operated, gate), "the API server consults the gate")
    operated.held("first", "alice")
    operated.lock("second", "bob", wait="10m")
    now = operated.get("configmap", "app")
    path = CONFIG_MAPS.path(operated.namespace, "app")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        reply = threads.submit(asyncio.run, _sent(operated, write(path, now)))
        try:
            gate.latch.wait_for_arrival()
            operated.kubectl("delete", "assetlock", "first", user="alice")
            operated.wait("assetlock/second", "condition=Acquired")
            yield reply
        finally:
            gate.latch.let_go()


def _is_consulted(operated: Operated, gate: HoldingWebhook) -> bool:
    operated.kubectl("label", "configmap", "app", "probe=1", "--dry-run=server", user="alice")
    return gate.is_consulted


async def _sent(operated: Operated, request: Request) -> Reply:
    transport = HttpTransport(load_config(operated.cluster.kubeconfig_for("alice"), environ={}))
    headers = {"content-type": request.content_type, "accept": "application/json"}
    body = None if request.body is None else json.dumps(request.body).encode()
    try:
        return await transport.request(
            request.method, request.path, params=request.params, headers=headers, body=body, timeout=60
        )
    finally:
        await transport.close()


def _configuration(operated: Operated, url: str) -> Object:
    """Validating webhooks are asked after mutating ones and after policies."""
    authority = json.loads(operated.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE", "DELETE"],
        "resources": ["configmaps"],
    }
    webhook = {
        "name": "hold.example.test",
        "clientConfig": {"url": url, "caBundle": authority["certificate-authority-data"]},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operated.namespace}},
        "matchConditions": [{"name": "alice", "expression": "request.userInfo.username == 'alice'"}],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 30,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"hold-{operated.namespace}"},
        "webhooks": [webhook],
    }
