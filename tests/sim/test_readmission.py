"""A write that is overtaken between its admission and its commit is admitted anew, by either server alike."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from assetlock.dev import ControlPlane
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import CONFIG_MAPS, NAMESPACES
from assetlock.kube.transport import Transport
from tests.cluster.races.gates import holding_webhook
from tests.sim import virtual
from tests.sim.admission import Attributes, Plugin
from tests.sim.client import Client
from tests.sim.conversation import Conversation, Operation
from tests.sim.server import Server

LATE = {"data": {"value": "late"}}
WRITES: dict[str, tuple[str, Any, str]] = {
    "merge patch": ("PATCH", LATE, "application/merge-patch+json"),
    "JSON patch": (
        "PATCH",
        [{"op": "replace", "path": "/data/value", "value": "late"}],
        "application/json-patch+json",
    ),
    "PUT": (
        "PUT",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **LATE},
        "application/json",
    ),
    "delete": ("DELETE", None, "application/json"),
}
Seen = list[tuple[str, Any, Any]]
"""Of each review the operation, and the content before and after it."""


async def overtaken(
    transport: Transport,
    namespace: str,
    write: str,
    is_held: Callable[[], Awaitable[Any]],
    let_go: Callable[[], None],
) -> list[Any]:
    """What the write was answered whose admission another one overtook, and what is left."""
    conversation = Conversation(transport, namespace)
    method, body, content_type = WRITES[write]
    late = asyncio.create_task(
        conversation.send(method, CONFIG_MAPS.path(namespace, "a"), body, content_type=content_type)
    )
    await is_held()
    await conversation.play([Operation("merge", value=2, version="none")])
    let_go()
    status = (await late).status
    reply = await conversation.send("GET", CONFIG_MAPS.path(namespace, "a"))
    return [status, json.loads(reply.body).get("data")]


async def prepare(transport: Transport, namespace: str) -> None:
    conversation = Conversation(transport, namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await conversation.send("POST", NAMESPACES.path(None), body)
    await conversation.play([Operation("create")])


def content(obj: dict[str, Any] | None) -> Any:
    return obj.get("data") if obj else None


def on_the_real_one(cluster: ControlPlane, write: str) -> tuple[list[Any], Seen]:
    namespace = f"readmission-{uuid.uuid4()}"

    def talk(what: Callable[[Transport], Coroutine[Any, Any, Any]]) -> Any:
        async def talking() -> Any:
            transport = HttpTransport(load_config(cluster.kubeconfig))
            try:
                return await what(transport)
            finally:
                await transport.close()

        return asyncio.run(talking())

    async def probe(transport: Transport) -> None:
        """The API server begins to ask a webhook a moment after that was configured."""
        conversation, dry = Conversation(transport, namespace), {"dryRun": "All"}
        while not webhook.is_consulted:
            path, kind = CONFIG_MAPS.path(namespace, "a"), "application/merge-patch+json"
            await conversation.send("PATCH", path, {"data": {"probe": "1"}}, params=dry, content_type=kind)

    async def held(transport: Transport) -> list[Any]:
        is_held = webhook.latch.wait_for_arrival
        return await overtaken(
            transport, namespace, write, lambda: asyncio.to_thread(is_held), webhook.latch.let_go
        )

    talk(lambda transport: prepare(transport, namespace))
    with holding_webhook(cluster) as (webhook, url):
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(_configuration(cluster, namespace, url)))
        try:
            talk(probe)
            answered = talk(held)
        finally:
            cluster.kubectl("delete", "validatingwebhookconfiguration", namespace)
        seen = [(r["operation"], content(r["oldObject"]), content(r["object"])) for r in webhook.reviewed]
    return answered, seen


def _configuration(cluster: ControlPlane, namespace: str, url: str) -> dict[str, Any]:
    authority = json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    about = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    hook = {
        "name": "hold.readmission.assetlock.dev",
        "clientConfig": {"url": url, "caBundle": authority["certificate-authority-data"]},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{**about, "operations": ["UPDATE", "DELETE"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": namespace}, "webhooks": [hook]}


def in_memory(write: str) -> tuple[list[Any], Seen]:
    seen: Seen = []

    async def main() -> list[Any]:
        server = Server(virtual.Clock(asyncio.get_running_loop()))
        client, arrived, gate = Client(server), asyncio.Event(), asyncio.Event()
        await prepare(client, "here")

        async def hold(request: Attributes) -> None:
            seen.append((request.operation, content(request.old), content(request.new)))
            if not arrived.is_set():
                arrived.set()
                await gate.wait()

        server.writer.plugins.append(Plugin(validate=hold))
        return await overtaken(client, "here", write, arrived.wait, gate.set)

    return virtual.run(main), seen


@pytest.mark.parametrize("write", WRITES)
def test_both_servers_admit_an_overtaken_write_anew(control_plane: ControlPlane, write: str) -> None:
    expected = on_the_real_one(control_plane, write)
    assert in_memory(write) == expected
    assert len(expected[1]) == 3
