"""The client against a real API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
import urllib.parse
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from assetlock.dev import ControlPlane
from assetlock.kube.api import Api
from assetlock.kube.config import SERVICE_ACCOUNT_FOLDER, load_config
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KindNotFound,
    NotFound,
    OutcomeUnknown,
    Unauthorized,
    Unreachable,
)
from assetlock.kube.http import HttpTransport
from assetlock.kube.recorder import EventRecorder
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, PODS, Object
from assetlock.kube.reviews import Action, UserInfo, authenticate, may

Connect = Callable[[Path], Api]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Connects by a kubeconfig; closed at the end of the test."""
    async with contextlib.AsyncExitStack() as stack:

        def connected(kubeconfig: Path) -> Api:
            api = Api(HttpTransport(load_config(kubeconfig, environ={})))
            stack.push_async_callback(api.close)
            return api

        yield connected


@pytest.fixture
def api(control_plane: ControlPlane, connect: Connect) -> Api:
    """A client with an administrator's certificate."""
    return connect(control_plane.kubeconfig)


@pytest.fixture
def changed_kubeconfig(control_plane: ControlPlane, tmp_path: Path) -> Callable[..., Path]:
    """The administrator's kubeconfig with other fields for the cluster, or another user."""

    def changed(user: dict[str, Any] | None = None, **cluster: Any) -> Path:
        config = yaml.safe_load(control_plane.kubeconfig.read_text())
        config["clusters"][0]["cluster"].update({name.replace("_", "-"): cluster[name] for name in cluster})
        if user is not None:
            config["users"][0]["user"] = user
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    return changed


def lease(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": "ann", **spec},
    }


def uid_and_version(body: Object) -> dict[str, str]:
    return {"uid": body["metadata"]["uid"], "resource_version": body["metadata"]["resourceVersion"]}


async def test_a_name_is_taken_once(api: Api, namespace: str) -> None:
    await api.create(LEASES, namespace, lease("asset.vm"))
    with pytest.raises(AlreadyExists):
        await api.create(LEASES, namespace, lease("asset.vm"))


async def test_of_two_replacements_of_one_version_the_second_is_refused(api: Api, namespace: str) -> None:
    made = await api.create(LEASES, namespace, lease("asset.vm"))
    await api.replace(LEASES, namespace, "asset.vm", {**made, "spec": {"holderIdentity": "bob"}})
    with pytest.raises(Conflict):
        await api.replace(LEASES, namespace, "asset.vm", {**made, "spec": {"holderIdentity": "eve"}})
    assert (await api.get(LEASES, namespace, "asset.vm"))["spec"]["holderIdentity"] == "bob"


async def test_of_two_merge_patches_of_one_version_the_second_is_refused(api: Api, namespace: str) -> None:
    made = await api.create(LEASES, namespace, lease("asset.vm"))
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    await api.merge_patch(
        LEASES, namespace, "asset.vm", {"metadata": version, "spec": {"leaseTransitions": 1}}
    )
    with pytest.raises(Conflict):
        await api.merge_patch(
            LEASES, namespace, "asset.vm", {"metadata": version, "spec": {"leaseTransitions": 2}}
        )


async def test_another_object_of_the_same_name_is_not_deleted(api: Api, namespace: str) -> None:
    first = await api.create(LEASES, namespace, lease("asset.vm"))
    await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(first))
    second = await api.create(LEASES, namespace, lease("asset.vm"))
    with pytest.raises(Conflict):
        await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(first))
    await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(second))
    with pytest.raises(NotFound):
        await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(second))


async def test_a_lease_that_was_renewed_meanwhile_is_not_deleted(api: Api, namespace: str) -> None:
    seen = await api.create(LEASES, namespace, lease("asset.vm"))
    await api.replace(LEASES, namespace, "asset.vm", {**seen, "spec": {"holderIdentity": "bob"}})
    with pytest.raises(Conflict):
        await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(seen))


async def test_a_dry_run_changes_nothing(api: Api, namespace: str) -> None:
    await api.create(LEASES, namespace, lease("asset.vm"), dry_run=True)
    with pytest.raises(NotFound):
        await api.get(LEASES, namespace, "asset.vm")


async def test_what_breaks_the_schema_is_invalid(api: Api, namespace: str) -> None:
    with pytest.raises(Invalid, match="leaseDurationSeconds"):
        await api.create(LEASES, namespace, lease("asset.vm", leaseDurationSeconds=0))


async def test_an_object_is_applied_whether_it_exists_or_not(api: Api, namespace: str) -> None:
    body: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"colour": "red"},
    }
    first = await api.apply(CONFIG_MAPS, namespace, body)
    second = await api.apply(CONFIG_MAPS, namespace, body)
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert first["metadata"]["managedFields"][0]["manager"] == "assetlock"


async def test_a_list_in_pages_is_whole_and_has_whole_items(api: Api, namespace: str) -> None:
    names = [f"asset.{number}" for number in range(7)]
    for name in names:
        await api.create(LEASES, namespace, lease(name))
    listed = await api.list(LEASES, namespace, limit=2)
    assert [item["metadata"]["name"] for item in listed] == names
    assert listed.items[0]["kind"] == "Lease"
    assert int(listed.resource_version) > 0


async def test_metadata_comes_without_the_rest(api: Api, namespace: str) -> None:
    await api.create(LEASES, namespace, lease("asset.vm"))
    (item,) = await api.list(LEASES, namespace, metadata_only=True, label_selector="!no")
    one = await api.get(LEASES, namespace, "asset.vm", metadata_only=True)
    assert "spec" not in item
    assert "spec" not in one
    assert one["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize("metadata_only", [False, True])
async def test_a_watch_shows_what_happens_after_the_list(
    api: Api, namespace: str, metadata_only: bool
) -> None:
    listed = await api.list(LEASES, namespace)
    made = await api.create(LEASES, namespace, lease("asset.vm"))
    await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(made))
    events = api.watch(
        LEASES, namespace, resource_version=listed.resource_version, metadata_only=metadata_only
    )
    async with contextlib.aclosing(events), asyncio.timeout(20):
        seen = [await anext(events), await anext(events)]
    assert [event.type for event in seen] == ["ADDED", "DELETED"]
    assert seen[0].object["metadata"]["uid"] == made["metadata"]["uid"]
    assert ("spec" in seen[0].object) is not metadata_only


async def test_a_watch_from_what_is_no_version_is_refused(api: Api, namespace: str) -> None:
    with pytest.raises(ApiError, match="banana"):
        await anext(api.watch(LEASES, namespace, resource_version="banana"))


async def test_a_reflector_sees_a_lease_come_change_and_go(api: Api, namespace: str) -> None:
    events: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    await api.create(LEASES, namespace, lease("asset.old"))
    listed: list[str] = []
    reflector = Reflector(
        api,
        LEASES,
        namespace,
        on_replace=lambda items, version: listed.extend(item["metadata"]["name"] for item in items),
        on_event=lambda kind, changed: events.put_nowait((kind, changed["metadata"]["name"])),
    )
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(20):
        await reflector.synced.wait()
        made = await api.create(LEASES, namespace, lease("asset.vm"))
        made = await api.replace(LEASES, namespace, "asset.vm", {**made, "spec": {"holderIdentity": "bob"}})
        await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(made))
        seen = [await events.get() for _ in range(3)]
    task.cancel()
    assert listed == ["asset.old"]
    assert seen == [("ADDED", "asset.vm"), ("MODIFIED", "asset.vm"), ("DELETED", "asset.vm")]


async def test_events_are_accepted_and_counted(api: Api, namespace: str) -> None:
    made = await api.create(LEASES, namespace, lease("asset.vm"))
    recorder = EventRecorder(api, "host-1")
    task = asyncio.create_task(recorder.run())
    for _ in range(3):
        recorder.record(made, "LockRefused", "ü" * 700, type="Warning", action="Refuse")
    await recorder.drain(timeout=20)
    task.cancel()
    (event,) = await api.list(EVENTS, namespace)
    assert (event["regarding"]["name"], event["series"]["count"]) == ("asset.vm", 3)
    assert recorder.dropped == 0


async def test_kinds_are_found_as_they_are_served(api: Api) -> None:
    discovery = Discovery(api)
    assert await discovery.resource_for("coordination.k8s.io/v1", "Lease") == LEASES
    assert await discovery.resource_for("v1", "Namespace") == NAMESPACES
    with pytest.raises(KindNotFound, match=r"does not serve 'metrics\.k8s\.io"):
        await discovery.resource_for("metrics.k8s.io/v1beta1", "PodMetrics")


async def test_a_user_without_rights_is_forbidden(
    control_plane: ControlPlane, connect: Connect, namespace: str
) -> None:
    with pytest.raises(Forbidden, match="stranger"):
        await connect(control_plane.kubeconfig_for("stranger")).list(LEASES, namespace)


async def test_the_server_says_who_may_do_what(api: Api, namespace: str) -> None:
    action = Action("update", "coordination.k8s.io", "leases", namespace)
    assert not (await may(api, UserInfo("stranger"), action)).allowed
    assert (await may(api, UserInfo("root", groups=("system:masters",)), action)).allowed


async def test_a_token_names_the_pod_it_is_bound_to(
    api: Api, control_plane: ControlPlane, namespace: str
) -> None:
    pod = {"metadata": {"name": "job"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    made = await api.create(PODS, namespace, {"apiVersion": "v1", "kind": "Pod", **pod})
    user = await authenticate(api, control_plane.token_for(namespace, "default", pod="job"))
    assert user is not None
    assert (user.username, user.pod_name, user.pod_uid) == (
        f"system:serviceaccount:{namespace}:default",
        "job",
        made["metadata"]["uid"],
    )
    assert await authenticate(api, "nonsense") is None


@pytest.fixture
def service_account(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """A folder like the one that pods have, for a ServiceAccount that may read Leases."""
    control_plane.kubectl("create", "role", "reader", "--verb=get,list", "--resource=leases", "-n", namespace)
    control_plane.kubectl(
        "create",
        "rolebinding",
        "reader",
        "--role=reader",
        f"--serviceaccount={namespace}:default",
        "-n",
        namespace,
    )
    cluster = yaml.safe_load(control_plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "token").write_text(control_plane.token_for(namespace, "default"))
    return tmp_path


async def test_a_pod_reads_with_its_own_token_and_with_the_one_after_it(
    control_plane: ControlPlane, namespace: str, service_account: Path
) -> None:
    url = urllib.parse.urlsplit(control_plane.server)
    environ = {
        "KUBERNETES_SERVICE_HOST": url.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(url.port),
        "HOME": str(service_account),
    }
    assert SERVICE_ACCOUNT_FOLDER.is_absolute()
    config = load_config(environ=environ, service_account=service_account)
    api = Api(HttpTransport(config))
    good = (service_account / "token").read_text()
    (service_account / "token").write_text("not.a.token")
    with pytest.raises(Unauthorized):
        await api.list(LEASES, namespace)
    (service_account / "token").write_text(good)
    assert (await api.list(LEASES, config.namespace)).items == []
    await api.close()


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[Object], Object]:
    """Makes an `exec` entry whose plugin answers with a status."""

    def made(status: Object) -> Object:
        answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        script = tmp_path / "login"
        script.write_text(f"#!{sys.executable} -S\nprint({json.dumps(answer)!r})\n")
        script.chmod(0o700)
        return {
            "exec": {"apiVersion": answer["apiVersion"], "command": "./login", "interactiveMode": "Never"}
        }

    return made


async def test_a_plugin_beside_the_kubeconfig_logs_in_with_a_token(
    control_plane: ControlPlane,
    connect: Connect,
    namespace: str,
    service_account: Path,
    plugin: Callable[[Object], Object],
    changed_kubeconfig: Callable[..., Path],
) -> None:
    token = (service_account / "token").read_text()
    api = connect(changed_kubeconfig(plugin({"token": token})))
    assert (await api.list(LEASES, namespace)).items == []


async def test_a_plugin_beside_the_kubeconfig_logs_in_with_a_certificate(
    control_plane: ControlPlane,
    connect: Connect,
    plugin: Callable[[Object], Object],
    changed_kubeconfig: Callable[..., Path],
) -> None:
    user = yaml.safe_load(control_plane.kubeconfig.read_text())["users"][0]["user"]
    certificate, key = (
        base64.b64decode(user[name]).decode() for name in ("client-certificate-data", "client-key-data")
    )
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    api = connect(changed_kubeconfig(plugin(status)))
    assert await api.get(NAMESPACES, None, "default")


async def test_a_server_whose_certificate_names_another_is_refused(
    connect: Connect, changed_kubeconfig: Callable[..., Path]
) -> None:
    api = connect(changed_kubeconfig(tls_server_name="elsewhere.example"))
    with pytest.raises(Unreachable, match=r"elsewhere\.example"):
        await api.get(NAMESPACES, None, "default")


async def test_a_server_may_be_known_by_another_of_its_names(
    connect: Connect, changed_kubeconfig: Callable[..., Path]
) -> None:
    api = connect(changed_kubeconfig(tls_server_name="localhost"))
    assert await api.get(NAMESPACES, None, "default")


async def test_a_server_of_another_authority_is_refused_unless_told_otherwise(
    connect: Connect, control_plane: ControlPlane, changed_kubeconfig: Callable[..., Path]
) -> None:
    path = changed_kubeconfig(certificate_authority_data=None)
    with pytest.raises(Unreachable, match="certificate"):
        await connect(path).get(NAMESPACES, None, "default")
    path = changed_kubeconfig(certificate_authority_data=None, insecure_skip_tls_verify=True)
    assert await connect(path).get(NAMESPACES, None, "default")


class Between:
    """Passes bytes between client and API server; once armed, drops the next answer and the connection."""

    def __init__(self, server: str) -> None:
        url = urllib.parse.urlsplit(server)
        self.address = (url.hostname, url.port)
        self.armed = False
        self.connections = 0
        self.url = ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        back, forth = await asyncio.open_connection(*self.address)
        try:
            await asyncio.gather(self.forward(reader, forth), self.answer(back, writer))
        except ConnectionError:
            pass
        finally:
            writer.close()
            forth.close()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.armed:
                self.armed = False
                raise ConnectionResetError
            writer.write(data)
            await writer.drain()
        writer.close()


@pytest.fixture
async def between(control_plane: ControlPlane) -> AsyncIterator[Between]:
    """A lossy way to the API server."""
    proxy = Between(control_plane.server)
    listener = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    proxy.url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield proxy
    listener.close()


async def claim(api: Api, namespace: str, seen: Object) -> None:
    await api.create(LEASES, namespace, lease("asset.new"))


async def renew(api: Api, namespace: str, seen: Object) -> None:
    body = {**seen, "spec": {**seen["spec"], "leaseTransitions": 5}}
    await api.replace(LEASES, namespace, "asset.vm", body)


async def stamp(api: Api, namespace: str, seen: Object) -> None:
    version = {"resourceVersion": seen["metadata"]["resourceVersion"]}
    await api.merge_patch(LEASES, namespace, "asset.vm", {"metadata": {**version, "labels": {"a": "b"}}})


async def drop(api: Api, namespace: str, seen: Object) -> None:
    await api.delete(LEASES, namespace, "asset.vm", **uid_and_version(seen))


@pytest.mark.parametrize("write", [claim, renew, stamp, drop])
async def test_a_write_that_was_committed_and_whose_answer_was_lost_is_neither_repeated_nor_believed(
    api: Api,
    connect: Connect,
    changed_kubeconfig: Callable[..., Path],
    between: Between,
    namespace: str,
    write: Any,
) -> None:
    seen = await api.create(LEASES, namespace, lease("asset.vm"))
    lossy = connect(changed_kubeconfig(server=between.url))
    await lossy.get(LEASES, namespace, "asset.vm")
    before = {item["metadata"]["name"]: item["metadata"] for item in await api.list(LEASES, namespace)}
    between.armed = True
    with pytest.raises(OutcomeUnknown):
        await write(lossy, namespace, seen)
    after = {item["metadata"]["name"]: item["metadata"] for item in await api.list(LEASES, namespace)}
    assert after != before
    assert between.connections == 1
