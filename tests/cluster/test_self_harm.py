"""What never stands in the way of a cluster: of its heartbeats, of whoever administers it, of our own repair."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import pathlib
import ssl
import urllib.request
from collections.abc import Iterator

import pytest
import yaml
from cryptography import x509
from tests.cluster.conftest import Operated, document, operator_in_a_cluster, until
from tests.cluster.matrix.cells import Object

from assetlock.admission.upkeep import certificates
from assetlock.admission.upkeep.tls import CONFIGURATION, SECRET, own_names
from assetlock.cli.stack import Part, Stack
from assetlock.core import names
from assetlock.dev import ControlPlane
from assetlock.kube import wire
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import Resource
from assetlock.kube.transport import Reply

EVERY_KIND = pathlib.Path(__file__).with_name("every_kind.yaml")
ASKED_ONLY = {"bindings", "certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"}
"""Requests to sign something or to place a pod: nothing that one creates, updates and deletes like others."""


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, Stack]]:
    """Not the one that other tests share: this one is hurt."""
    with operator_in_a_cluster() as running:
        yield running


def test_no_write_to_what_is_not_locked_reaches_the_webhooks(operated: Operated) -> None:
    before = reviews(operated.stack)
    assert asyncio.run(write_every_kind(operated)) > 50
    renew_heartbeat(operated)
    assert reviews(operated.stack) == before


def test_a_node_that_is_locked_goes_on_beating(operated: Operated) -> None:
    name = f"node-{operated.namespace}"
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    operated.cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(made))
    target = {"apiVersion": "v1", "kind": "Node", "name": name}
    operated.create(document("Asset", "vm-1", {"type": "Node", "targets": [target]}))
    operated.held("first")
    kubelet = f"system:node:{name}"
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    patch = json.dumps({"status": {"conditions": [condition]}})
    beat = ("patch", "node", name, "--subresource=status", f"--patch={patch}")
    operated.cluster.kubectl(*beat, user=kubelet, groups=MASTERS)
    operated.cluster.kubectl("label", "node", name, "disk=ssd", user=kubelet, groups=MASTERS)
    assert "held by alice" in as_master(operated, "label", "node", name, "disk=hdd", "--overwrite")


def test_a_lock_on_our_own_certificate_does_not_keep_us_from_renewing_it(operated: Operated) -> None:
    target = {"apiVersion": "v1", "kind": "Secret", "name": SECRET, "namespace": names.OPERATOR_NAMESPACE}
    operated.create(document("Asset", "vm-1", {"type": "Secret", "targets": [target]}))
    operated.held("first")
    expire_the_certificate(operated.cluster, "--as=oncall", *(f"--as-group={group}" for group in GLASS))
    until(lambda: not is_expired(operated.cluster), "the certificate is renewed", seconds=60)
    operated.stack.wait_until_serving()
    where = f"--namespace={names.OPERATOR_NAMESPACE}"
    assert "held by alice" in as_master(operated, "label", "secret", SECRET, "a=b", where)
    operated.kubectl("delete", "assetlock", "first", user="alice")
    labels = ("get", "secret", SECRET, where, "--output=jsonpath={.metadata.labels}")
    until(lambda: names.FENCED_LABEL not in operated.cluster.kubectl(*labels).stdout, "the Secret is free")


def test_with_nothing_of_ours_running_everything_unlocked_can_be_written_and_we_come_back(
    operated: Operated,
) -> None:
    operated.stack.kill()
    expire_the_certificate(operated.cluster)
    assert asyncio.run(write_every_kind(operated)) > 50
    renew_heartbeat(operated)
    assert is_expired(operated.cluster)
    operated.stack.restart()
    assert not is_expired(operated.cluster)
    operated.asset("vm-1", "app")
    operated.held("first")


def test_all_that_is_ours_can_be_deleted_while_none_of_it_runs_and_everything_is_locked() -> None:
    with operator_in_a_cluster() as (cluster, stack):
        cluster.kubectl("create", "namespace", "shop")
        operated = Operated(cluster, stack, "shop")
        operated.asset("vm-1", "app")
        operated.held("first")
        stack.kill()
        for kind in ("mutatingwebhookconfiguration", "validatingadmissionpolicybinding"):
            cluster.kubectl("delete", kind, "--selector=app.kubernetes.io/name=assetlock")
        until(lambda: operated.write("app", "bob").returncode == 0, "the API server notices")
        rest = "validatingadmissionpolicy,clusterrole,clusterrolebinding"
        cluster.kubectl("delete", rest, "--selector=app.kubernetes.io/name=assetlock")
        cluster.kubectl("delete", "namespace", names.OPERATOR_NAMESPACE, "shop", "--timeout=60s")
        cluster.kubectl("delete", "crd", "assets.assetlock.dev", "assetlocks.assetlock.dev", "--timeout=60s")


TRIES = 600
MASTERS = ("system:masters",)
GLASS = ("system:masters", names.BREAK_GLASS_GROUP)


async def write_every_kind(operated: Operated) -> int:
    """Create, update and delete an object of every kind that is served; gives how many there are."""
    text = EVERY_KIND.read_text().replace("NAMESPACE", operated.namespace)
    samples = {(one["apiVersion"], one["kind"]): one for one in yaml.safe_load_all(text)}
    kinds = served(operated.cluster)
    transport = HttpTransport(load_config(operated.cluster.kubeconfig, environ={}))
    try:
        for kind in kinds:
            await _written(transport, kind, operated.namespace, samples[kind.api_version, kind.kind])
    finally:
        await transport.close()
    return len(kinds)


async def _written(transport: HttpTransport, kind: Resource, namespace: str, sample: Object) -> None:
    place = namespace if kind.namespaced else None
    path = kind.path(place, sample["metadata"]["name"])
    for method, where, body in (
        ("POST", kind.path(place), sample),
        ("PATCH", path, {"metadata": {"labels": {"tried": "yes"}}}),
        ("DELETE", path, None),
    ):
        reply = await _sent(transport, method, where, body)
        assert reply.status < 300, (kind.kind, method, reply.body)
    for _ in range(TRIES):
        if (await _sent(transport, "GET", path, None)).status == 404:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{kind.kind} was deleted, but does not go")


async def _sent(transport: HttpTransport, method: str, path: str, body: Object | None) -> Reply:
    headers = {"content-type": wire.MERGE_PATCH if method == "PATCH" else wire.JSON, "accept": wire.JSON}
    data = None if body is None else json.dumps(body).encode()
    return await transport.request(method, path, params={}, headers=headers, body=data, timeout=60)


def served(cluster: ControlPlane) -> list[Resource]:
    """Every kind that one can create, update and delete, in the version that the server prefers; ours apart."""
    listed = cluster.kubectl("api-resources", "--verbs=create,update,delete", "--no-headers").stdout
    found = []
    for line in listed.splitlines():
        plural, *_, api_version, namespaced, kind = line.split()
        group, _, version = api_version.rpartition("/")
        if group != names.GROUP and plural not in ASKED_ONLY:
            found.append(Resource(group, version, plural, kind, namespaced == "true"))
    return found


def renew_heartbeat(operated: Operated) -> None:
    """What a kubelet does every ten seconds."""
    heartbeat = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": operated.namespace, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": operated.namespace, "leaseDurationSeconds": 40},
    }
    where = "--namespace=kube-node-lease"
    operated.cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(heartbeat))
    patch = '--patch={"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}'
    operated.cluster.kubectl("patch", "lease", operated.namespace, "--type=merge", patch, where)
    operated.cluster.kubectl("delete", "lease", operated.namespace, where)


def reviews(stack: Stack) -> float:
    """How many reviews the webhooks were ever asked for, but for the deletion of definitions, which all are."""
    with urllib.request.urlopen(
        stack.url(Part.ADMISSION, "/metrics"), context=ssl._create_unverified_context(), timeout=10
    ) as answer:
        lines = answer.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("assetlock_admission_decisions_total{")]
    assert counted, "the probe of the operator's own start is among them"
    return sum(float(line.rpartition(" ")[2]) for line in counted if 'webhook="definitions"' not in line)


def expire_the_certificate(cluster: ControlPlane, *as_whom: str) -> None:
    """Put certificates into our Secret, and into the webhooks, that ended years ago."""
    long_ago = datetime.datetime.now(datetime.UTC) - 2 * certificates.CA_LIFE
    expired = certificates.issue(own_names(), long_ago)
    parts = {
        "ca.crt": expired.trusted,
        "ca.key": expired.ca_key,
        "tls.crt": expired.certificate,
        "tls.key": expired.key,
    }
    patch = json.dumps({"stringData": parts})
    where = f"--namespace={names.OPERATOR_NAMESPACE}"
    cluster.kubectl("patch", "secret", SECRET, "--type=merge", f"--patch={patch}", where, *as_whom)
    trusted = base64.b64encode(expired.trusted.encode()).decode()
    webhooks = json.loads(cluster.kubectl("get", *_CONFIGURATION, "--output=json").stdout)["webhooks"]
    steps = [
        {"op": "replace", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": trusted}
        for number in range(len(webhooks))
    ]
    cluster.kubectl("patch", *_CONFIGURATION, "--type=json", f"--patch={json.dumps(steps)}")


_CONFIGURATION = ("mutatingwebhookconfiguration", CONFIGURATION)


def is_expired(cluster: ControlPlane) -> bool:
    """Whether the certificate in our Secret has ended."""
    path = "--output=jsonpath={.data.tls\\.crt}"
    where = f"--namespace={names.OPERATOR_NAMESPACE}"
    pem = base64.b64decode(cluster.kubectl("get", "secret", SECRET, path, where).stdout)
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc < datetime.datetime.now(datetime.UTC)


def as_master(operated: Operated, *command: str) -> str:
    """What kubectl complains of when somebody else's cluster-admin runs this."""
    done = operated.cluster.kubectl(*command, user="bob", groups=MASTERS, check=False)
    assert done.returncode != 0, done.stdout
    return done.stderr
