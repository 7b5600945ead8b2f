"""The in-memory API server answers as the real one does: same random calls, same codes, objects and events."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import LEASES, NAMESPACES
from assetlock.kube.transport import Transport
from tests.sim import kinds, virtual
from tests.sim.client import Client
from tests.sim.conversation import KINDS, THINGS, Conversation, Operation
from tests.sim.server import Server

SERVED_THINGS = kinds.custom("sim.assetlock.dev", "v1", "things", "Thing", "spec.shade")
THINGS_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.sim.assetlock.dev"},
    "spec": {
        "group": "sim.assetlock.dev",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.shade"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"shade": {"type": "string"}, "size": {"type": "integer"}},
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}
WATCHES = [(resource, selector) for resource in KINDS for selector in ("", "color=red")]

_colors = st.sampled_from(["", "red", "blue"])
_kinds = st.integers(0, len(KINDS) - 1)
_names = st.sampled_from(["a", "b"])
_values = st.integers(0, 2)
_versions = st.sampled_from(["good", "none", "stale"])
_uids = st.sampled_from(["none", "good", "wrong"])
_subresources = st.sampled_from(["", "", "status"])
_objects = {"kind": _kinds, "name": _names, "value": _values, "color": _colors}
_selectors = st.sampled_from(
    ["", "color=red", "color!=red", "color in (red,blue)", "color notin (red)", "!color", "color"]
)
_fields = st.sampled_from(["", "metadata.name=a", "metadata.name!=a", "spec.shade=shade-1", "spec.size=1"])
operations = st.one_of(
    st.builds(Operation, st.just("create"), finalizer=st.booleans(), **_objects),
    st.builds(Operation, st.just("generate"), kind=_kinds),
    st.builds(Operation, st.just("get"), **_objects, subresource=_subresources, partial=st.booleans()),
    st.builds(
        Operation, st.just("list"), kind=_kinds, selector=_selectors, field=_fields,
        limit=st.integers(0, 1), partial=st.booleans(),
    ),
    *(
        st.builds(
            Operation, st.just(verb), **_objects, finalizer=st.booleans(),
            version=_versions, uid=_uids, subresource=_subresources,
        )
        for verb in ("put", "merge", "json")
    ),
    st.builds(Operation, st.just("delete"), **_objects, version=_versions, uid=_uids),
    st.builds(Operation, st.just("clear"), **_objects),
)  # fmt: skip


@dataclass
class Real:
    """The real server, and the event loop that its connections live in."""

    runner: asyncio.Runner
    transport: Transport


@pytest.fixture(scope="module")
def real(control_plane: Any) -> Iterator[Real]:
    control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(THINGS_CRD))
    control_plane.kubectl("wait", "--for=condition=Established", "crd/things.sim.assetlock.dev")
    with asyncio.Runner() as runner:
        real = Real(runner, HttpTransport(load_config(control_plane.kubeconfig)))
        runner.run(until_things_are_served(real.transport))
        yield real
        runner.run(real.transport.close())


async def until_things_are_served(transport: Transport) -> None:
    """A CRD is established a moment before its paths answer."""
    conversation = Conversation(transport, "default")
    while (await conversation.send("GET", THINGS.path("default"))).status != 200:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def converse(transport: Transport, namespace: str, calls: list[Operation]) -> list[Any]:
    """Everything one server says: first about its namespace, then to each call, then to the watches."""
    conversation = Conversation(transport, namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    created = await conversation.send("POST", NAMESPACES.path(None), body)
    assert created.status == 201, created.body
    start = json.loads(created.body)["metadata"]["resourceVersion"]
    answers = await conversation.play(calls)
    for kind in range(len(KINDS)):
        await conversation.play([Operation("create", kind=kind, name="end", color="red")])
    for resource, selector in WATCHES:
        answers.append(await conversation.watched(resource, start, selector))
    return answers


def in_memory(namespace: str, calls: list[Operation]) -> list[Any]:
    """What the in-memory server says."""

    async def main() -> list[Any]:
        served = (*kinds.DEFAULT, SERVED_THINGS)
        clock = virtual.Clock(asyncio.get_running_loop())
        server = Server(clock, served=served, strict_namespaces=True)
        return await converse(Client(server), namespace, calls)

    return virtual.run(main)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(calls=st.lists(operations, min_size=1, max_size=40))
def test_both_servers_answer_the_same_calls_alike(real: Real, calls: list[Operation]) -> None:
    namespace = f"conformance-{uuid.uuid4()}"
    expected = real.runner.run(converse(real.transport, namespace, calls))
    answered = in_memory(namespace, calls)
    for position, (ours, theirs) in enumerate(zip(answered, expected, strict=True)):
        asked = calls[position] if position < len(calls) else WATCHES[position - len(calls)]
        assert ours == theirs, asked


def test_a_watch_from_a_forgotten_revision_is_answered_alike(real: Real) -> None:
    async def first_line(transport: Transport) -> Any:
        params = {"watch": "true", "resourceVersion": "1"}
        stream = transport.stream(THINGS.path("default"), params=params, headers={}, idle_timeout=10)
        async for line in stream:
            event = json.loads(line)
            return event["type"], event["object"]["code"], event["object"]["reason"]
        return None

    async def remembered_by_us() -> Any:
        server = Server(virtual.Clock(asyncio.get_running_loop()), served=(kinds.LEASES, SERVED_THINGS))
        client = Client(server)
        await Conversation(client, "default").play([Operation("create", kind=KINDS.index(LEASES))])
        server.store.compact()
        return await first_line(client)

    assert virtual.run(remembered_by_us) == real.runner.run(first_line(real.transport))
