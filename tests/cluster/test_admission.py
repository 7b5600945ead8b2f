"""The admission process against a real API server, without a controller: the test stamps in its place."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import json
import os
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.conftest import until
from tests.cluster.stamping import Cluster, colour, config_map, lease

from assetlock.admission.upkeep.tls import CONFIGURATION, SECRET, SharedSecret
from assetlock.core import names
from assetlock.dev import AddedProcess, ControlPlane
from assetlock.install import install
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.model.times import format_time

HOLDER, STRANGER = "alice", "mallory"
PLAIN = ("plain-users",)
RULES = [
    ("leases.coordination.k8s.io", "*"),
    ("assetlocks.assetlock.dev", "*"),
    ("assets.assetlock.dev", "get,create,update,patch,delete,lock"),
]


class Admission:
    """The process, in a control plane that knows it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.port = _free_port()
        self._process: AddedProcess | None = None
        asyncio.run(_installed(plane.kubeconfig, f"https://127.0.0.1:{self.port}"))

    def start(self) -> None:
        kubeconfig = self.plane.kubeconfig_for_service_account(
            names.OPERATOR_NAMESPACE, "assetlock-admission"
        )
        argv = [sys.executable, "-m", "assetlock.cli.main", "operator", "admission"]
        argv += ["--kubeconfig", str(kubeconfig), "--host", "127.0.0.1", "--port", str(self.port)]
        ready = f"https://127.0.0.1:{self.port}/readyz"
        self._process = self.plane.add_process("admission", argv, ready_url=ready)

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self.plane.remove_process("admission")

    def served_certificate(self) -> str:
        return ssl.get_server_certificate(("127.0.0.1", self.port))


@pytest.fixture(scope="module")
def admission() -> Iterator[Admission]:
    with ControlPlane() as plane:
        running = Admission(plane)
        for number, (resource, verbs) in enumerate(RULES):
            name = f"plain-{number}"
            plane.kubectl("create", "clusterrole", name, f"--verb={verbs}", f"--resource={resource}")
            plane.kubectl(
                "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--group={PLAIN[0]}"
            )
        running.start()
        _wait_until_consulted(Cluster(plane, "default"))
        yield running


@pytest.fixture
def cluster(admission: Admission, request: pytest.FixtureRequest) -> Cluster:
    name = request.node.name.replace("_", "-").replace("[", "-").rstrip("]")[-60:].strip("-.:")
    admission.plane.kubectl("create", "namespace", name)
    return Cluster(admission.plane, name)


@pytest.fixture
def locked(cluster: Cluster) -> Cluster:
    """An Asset that alice holds for an hour, and its target."""
    cluster.create(config_map())
    cluster.create(asset(target("settings")))
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    held = {
        "lock": "patching",
        "identity": HOLDER,
        "fencingToken": 7,
        "acquisition": "a",
        "acquireTime": format_time(now),
        "expireTime": format_time(now + datetime.timedelta(hours=1)),
        "reason": "kernel update",
    }
    patch = {"status": {"lockState": "Locked", "fencingToken": 7, "holders": [held]}}
    status = ("--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}")
    cluster.must("patch", "asset", "vm", *status, user=names.CONTROLLER_USER)
    cluster.stamp("configmap", "settings", HOLDER)
    return cluster


def test_a_stranger_gets_423_and_reads_who_since_until_why_and_what_to_do(locked: Cluster) -> None:
    complaint = locked.patch("configmap", "settings", colour("blue"), user=STRANGER, check=False)
    assert "Error from server (Locked)" in complaint
    assert f"ConfigMap settings in namespace {locked.namespace} is locked through asset vm" in complaint
    assert f"held by {HOLDER} since 20" in complaint
    assert " until 20" in complaint
    assert "(kernel update)" in complaint
    assert "with assetName: vm and wait: 1h5m" in complaint


def test_the_raw_answer_has_code_causes_and_a_time_to_retry(locked: Cluster) -> None:
    done = locked.run("delete", "configmap", "settings", "--v=8", user=STRANGER)
    assert "423" in done.stderr
    assert '"reason":"Locked"' in done.stderr
    assert '"retryAfterSeconds":60' in done.stderr
    assert '"causes":[{"reason":"Locked","message":"alice since' in done.stderr
    assert "Retry-After: 60" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("delete", "configmap", "settings"),
        ("delete", "configmap", "--all"),
        ("label", "configmap", "settings", "assetlock.dev/fenced-"),
        ("delete", "asset", "vm"),
        ("label", "asset", "vm", "a=b"),
    ],
    ids=["delete", "delete-all", "unfence", "delete-asset", "label-asset"],
)
def test_every_kind_of_write_by_a_stranger_gets_423(locked: Cluster, command: tuple[str, ...]) -> None:
    assert "(Locked)" in locked.run(*command, user=STRANGER).stderr


def test_the_holders_replace_goes_through_and_the_stamp_stays(locked: Cluster) -> None:
    before = locked.get("configmap", "settings")["metadata"]
    manifest = json.dumps({**config_map(), "data": {"colour": "blue"}})
    locked.must("replace", "--filename=-", user=HOLDER, stdin=manifest)
    locked.must("label", "configmap", "settings", "assetlock.dev/fenced-", user=HOLDER)
    after = locked.get("configmap", "settings")
    metadata = after["metadata"]
    assert after["data"] == {"colour": "blue"}
    assert metadata["labels"] == before["labels"]
    assert metadata["annotations"] == before["annotations"]


def test_an_undone_rollout_does_not_bring_an_old_holder_back(locked: Cluster) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    locked.create(web)
    locked.stamp("deployment", "web", HOLDER, token=1)
    revision = "--for=jsonpath={.metadata.annotations.deployment\\.kubernetes\\.io/revision}="
    locked.must("wait", "deployment/web", f"{revision}1", "--timeout=30s")
    locked.must("set", "image", "deployment/web", "c=two", user=HOLDER)
    locked.must("wait", "deployment/web", f"{revision}2", "--timeout=30s")
    locked.stamp("deployment", "web", "bob", token=2)
    locked.must("rollout", "undo", "deployment/web", user="bob")
    assert "held by bob" in locked.run("set", "image", "deployment/web", "c=three", user=HOLDER).stderr
    locked.must("set", "image", "deployment/web", "c=four", user="bob")


def test_the_holders_write_is_recorded_on_the_asset_and_renews_the_lease(locked: Cluster) -> None:
    locked.create(lease(owner=HOLDER), user=HOLDER)
    renewed = _renew_time(locked)
    locked.patch("configmap", "settings", colour("blue"), user=HOLDER)
    until(lambda: _patched_by(locked) == HOLDER, "the write is recorded")
    until(lambda: _renew_time(locked) > renewed, "the Lease is renewed")


def test_an_unlocked_object_is_nobodys_business(locked: Cluster) -> None:
    locked.create(config_map("free"), user=STRANGER)
    locked.patch("configmap", "free", colour("blue"), user=STRANGER)
    locked.must("delete", "configmap", "free", user=STRANGER)


def test_breaking_the_glass_is_let_through_and_counted(locked: Cluster) -> None:
    groups = ("system:masters", names.BREAK_GLASS_GROUP)
    change = ("label", "configmap", "settings", "fixed=yes")
    assert locked.run(*change, user="oncall", groups=groups).returncode == 0
    events = ("get", "events", "--output=jsonpath={.items[*].reason}")
    until(lambda: "BrokeGlass" in locked.must(*events), "it is told of")


def test_a_lock_is_its_creators(cluster: Cluster) -> None:
    cluster.create(asset(target("settings")))
    assert not cluster.create(assetlock(), user="bob", groups=PLAIN)
    assert cluster.get("alk", "patching")["spec"]["holder"] == {"username": "bob"}


def test_naming_somebody_else_needs_the_right_to(cluster: Cluster) -> None:
    cluster.create(asset(target("settings")))
    named = assetlock(holder={"username": "carol"})
    assert 'needs the verb "delegate"' in cluster.create(named, user="bob", groups=PLAIN)
    assert not cluster.create(named, user="ci")


@pytest.mark.parametrize("ttl", ["0s", "-5m", "banana", "9600h", "25h"])
def test_a_ttl_that_can_not_be_meant_is_refused_by_name(cluster: Cluster, ttl: str) -> None:
    complaint = cluster.create(assetlock(ttl=ttl), user="bob", groups=PLAIN)
    assert "(Invalid)" in complaint or "is invalid" in complaint
    assert "spec.ttl" in complaint


def test_a_lease_is_stamped_with_owner_and_our_own_times(cluster: Cluster) -> None:
    cluster.create(asset(target("settings")))
    future = lease(renewTime="2099-01-01T00:00:00.000000Z", acquireTime="2099-01-01T00:00:00.000000Z")
    assert not cluster.create(future, user="bob", groups=PLAIN)
    stored = cluster.get("lease", "asset.vm")
    annotations = stored["metadata"]["annotations"]
    assert annotations[names.OWNER_ANNOTATION] == "- bob"
    assert len(annotations[names.ACQUISITION_ANNOTATION]) == 36
    spec = stored["spec"]
    assert spec["renewTime"] == spec["acquireTime"] < "2099"


def test_a_lease_without_a_duration_gets_the_default(cluster: Cluster) -> None:
    cluster.create(lease(leaseDurationSeconds=None), user="bob", groups=PLAIN)
    assert cluster.get("lease", "asset.vm")["spec"]["leaseDurationSeconds"] == 1800


def test_an_absurd_lease_duration_is_refused(cluster: Cluster) -> None:
    complaint = cluster.create(lease(leaseDurationSeconds=2147483647), user="bob", groups=PLAIN)
    assert "is not between 1 and 86400 (a day)" in complaint


def test_a_lease_is_renewed_by_its_owner_and_its_times_are_kept_honest(cluster: Cluster) -> None:
    cluster.create(lease(), user="bob", groups=PLAIN)
    before = cluster.get("lease", "asset.vm")
    patch = {
        "spec": {"renewTime": "2099-01-01T00:00:00.000000Z", "acquireTime": "2001-01-01T00:00:00.000000Z"}
    }
    change = ("patch", "lease", "asset.vm", "--type=merge", f"--patch={json.dumps(patch)}")
    assert not cluster.run(*change, user="bob", groups=PLAIN).stderr
    after = cluster.get("lease", "asset.vm")
    assert before["spec"]["renewTime"] < after["spec"]["renewTime"] < "2099"
    assert before["spec"]["acquireTime"] == after["spec"]["acquireTime"]
    assert before["metadata"]["annotations"] == after["metadata"]["annotations"]


@pytest.mark.parametrize(
    "command",
    [
        ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"holderIdentity":"mine"}}'),
        ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"holderIdentity":""}}'),
        ("delete", "lease", "asset.vm"),
    ],
    ids=["take", "free", "delete"],
)
def test_somebody_elses_lease_is_locked(cluster: Cluster, command: tuple[str, ...]) -> None:
    cluster.create(lease(), user="bob", groups=PLAIN)
    complaint = cluster.run(*command, user="carol", groups=PLAIN).stderr
    assert "(Locked)" in complaint
    assert "held as 'job-1' by bob since" in complaint


def test_an_expired_lease_is_still_not_taken_by_an_update(cluster: Cluster) -> None:
    cluster.create(lease(leaseDurationSeconds=1), user="bob", groups=PLAIN)
    take = ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"holderIdentity":"mine"}}')
    until(
        lambda: "is being freed" in cluster.run(*take, user="carol", groups=PLAIN).stderr, "the time is over"
    )


def test_who_may_unlock_frees_anybodys_lease(cluster: Cluster) -> None:
    cluster.create(lease(), user="bob", groups=PLAIN)
    free = ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"holderIdentity":""}}')
    cluster.must(*free, user="unlocker")
    annotations = cluster.get("lease", "asset.vm")["metadata"].get("annotations", {})
    assert not annotations


def test_a_freed_lease_is_taken_as_a_new_acquisition(cluster: Cluster) -> None:
    cluster.create(lease(), user="bob", groups=PLAIN)
    first = cluster.get("lease", "asset.vm")
    patch = ("patch", "lease", "asset.vm", "--type=merge")
    cluster.run(*patch, '--patch={"spec":{"holderIdentity":""}}', user="bob", groups=PLAIN)
    taken = cluster.run(*patch, '--patch={"spec":{"holderIdentity":"c"}}', user="carol", groups=PLAIN)
    assert not taken.stderr
    second = cluster.get("lease", "asset.vm")
    ids = [one["metadata"]["annotations"][names.ACQUISITION_ANNOTATION] for one in (first, second)]
    assert ids[0] != ids[1]
    assert second["metadata"]["annotations"][names.OWNER_ANNOTATION] == "- carol"
    assert second["spec"]["leaseTransitions"] == 1


def test_a_lease_that_names_no_holder_is_made_with_a_warning(cluster: Cluster) -> None:
    complaint = cluster.create(lease(holderIdentity=""), user="bob", groups=PLAIN)
    assert complaint.startswith("Warning: spec.holderIdentity is empty, so this Lease locks nothing")


def test_nobody_makes_an_asset_of_what_they_could_not_change(cluster: Cluster) -> None:
    cluster.create(config_map())
    named = [
        target("settings"),
        target("settings", namespace="kube-system"),
        target("edit", apiVersion="rbac.authorization.k8s.io/v1", kind="ClusterRole"),
        target("ghost", apiVersion="example.com/v1", kind="Ghost"),
    ]
    for one in named:
        complaint = cluster.create(asset(one), user="bob", groups=PLAIN)
        assert f"bob may not update {one['kind']} {one['name']}" in complaint
    cluster.must("create", "rolebinding", "edit", "--clusterrole=edit", "--user=bob")
    assert not cluster.create(asset(named[0]), user="bob", groups=PLAIN)
    patch = json.dumps({"spec": {"targets": named[:2]}})
    added = cluster.run("patch", "asset", "vm", "--type=merge", f"--patch={patch}", user="bob", groups=PLAIN)
    assert "namespace kube-system" in added.stderr


def test_a_dead_process_leaves_the_policies_and_blocks_nothing_unlocked(
    locked: Cluster, admission: Admission
) -> None:
    admission.kill()
    try:
        complaint = locked.patch("configmap", "settings", colour("blue"), user=STRANGER, check=False)
        assert "(Forbidden)" in complaint
        locked.patch("configmap", "settings", colour("blue"), user=HOLDER)
        assert not locked.create(config_map("free"), user=STRANGER)
        locked.must("delete", "configmap", "free", user=STRANGER)
        locked.must("delete", "asset", "vm", user=HOLDER)
        assert "failed calling webhook" in locked.create(assetlock(), user="bob", groups=PLAIN)
    finally:
        admission.start()
    _wait_until_consulted(locked)


def test_a_lost_certificate_is_made_anew_under_the_open_listener(
    cluster: Cluster, admission: Admission
) -> None:
    cluster.create(asset(target("settings")))
    before = admission.served_certificate()
    admission.plane.kubectl("delete", "secret", SECRET, f"--namespace={names.OPERATOR_NAMESPACE}")
    until(lambda: admission.served_certificate() != before, "another is served", seconds=30)
    until(lambda: not cluster.create(assetlock(), user="bob", groups=PLAIN), "it is trusted")


async def test_two_replicas_serve_one_certificate_and_renew_it_once(admission: Admission) -> None:
    now = datetime.datetime.now(datetime.UTC)
    async with _api(admission.plane.kubeconfig) as api:
        first = await SharedSecret(api).current()
        later = now + datetime.timedelta(days=61)
        replicas = [SharedSecret(api, now=lambda: later) for _ in range(2)]
        renewed = await asyncio.gather(*(replica.current() for replica in replicas))
        assert renewed[0] == renewed[1] != first
        assert await SharedSecret(api).current() == renewed[0]


def test_the_api_server_trusts_what_is_served(admission: Admission) -> None:
    read = ("get", "mutatingwebhookconfiguration", CONFIGURATION, "--output=json")
    webhooks = json.loads(admission.plane.kubectl(*read).stdout)["webhooks"]
    bundles = {webhook["clientConfig"].get("caBundle") for webhook in webhooks}
    assert len(bundles) == 1, "each of them the same one"
    assert base64.b64decode(bundles.pop()).startswith(b"-----BEGIN CERTIFICATE-----")


def target(name: str, **fields: str) -> dict[str, str]:
    """One entry of spec.targets."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, **fields}


def asset(*targets: dict[str, str]) -> dict[str, object]:
    """An Asset that stands for these."""
    spec = {"type": "VM", "targets": list(targets)}
    return {"apiVersion": names.API_VERSION, "kind": "Asset", "metadata": {"name": "vm"}, "spec": spec}


def assetlock(**spec: object) -> dict[str, object]:
    """An AssetLock that names nobody."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "AssetLock",
        "metadata": {"name": "patching"},
        "spec": {"assetName": "vm", **spec},
    }


def _renew_time(cluster: Cluster) -> str:
    return cluster.must("get", "lease", "asset.vm", "--output=jsonpath={.spec.renewTime}")


def _patched_by(cluster: Cluster) -> str:
    return cluster.must("get", "asset", "vm", "--output=jsonpath={.status.lastPatchedBy}")


def _wait_until_consulted(cluster: Cluster) -> None:
    probe = ("create", "--dry-run=server", "--output=json", "--filename=-")
    manifest = json.dumps(lease("probe"))
    until(
        lambda: names.ACQUISITION_ANNOTATION in cluster.run(*probe, stdin=manifest).stdout,
        "the API server asks the webhooks",
        seconds=30,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def _api(kubeconfig: Path):  # type: ignore[no-untyped-def]
    api = Api(HttpTransport(load_config(kubeconfig)))
    try:
        yield api
    finally:
        await api.close()


async def _installed(kubeconfig: Path, url: str) -> None:
    async with _api(kubeconfig) as api:
        await install(api, webhook_url=url)
