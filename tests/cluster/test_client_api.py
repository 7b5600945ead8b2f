"""The blocking client against a real API server: logging in every way, and writing."""

from __future__ import annotations

import base64
import json
import stat
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.tunnel import Tunnel, tunnel

from assetlock.client.api import (
    LEASES,
    Api,
    Config,
    Conflict,
    Forbidden,
    NotFound,
    Resource,
    Unauthorized,
    Unreachable,
    load_config,
)
from assetlock.dev import ControlPlane

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CONFIG_MAPS = Resource("v1", "configmaps", "ConfigMap")
V1 = "client.authentication.k8s.io/v1"

Changed = Callable[..., Path]


@pytest.fixture
def changed(control_plane: ControlPlane, tmp_path: Path) -> Changed:
    """The administrator's kubeconfig with other fields for the cluster, or another user."""

    def change(user: dict[str, Any] | None = None, **cluster: Any) -> Path:
        config = yaml.safe_load(control_plane.kubeconfig.read_text())
        config["clusters"][0]["cluster"].update({name.replace("_", "-"): cluster[name] for name in cluster})
        if user is not None:
            config["users"][0]["user"] = user
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    return change


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    connected = Api(load_config(control_plane.kubeconfig, environ={}))
    yield connected
    connected.close()


def user_of(config: Config) -> dict[str, Any]:
    """Whom the API server takes us for."""
    api = Api(config)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        user: dict[str, Any] = api.create(REVIEWS, body)["status"]["userInfo"]
    finally:
        api.close()
    return user


def from_file(path: Path) -> Config:
    return load_config(path, environ={})


def lease(name: str) -> dict[str, Any]:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return {**body, "metadata": {"name": name}, "spec": {"holderIdentity": "ann"}}


def test_a_name_is_taken_once(api: Api, namespace: str) -> None:
    made = api.create(LEASES.path(namespace), lease("asset.vm"))
    assert api.get(LEASES.path(namespace, "asset.vm")) == made
    with pytest.raises(Conflict) as raised:
        api.create(LEASES.path(namespace), lease("asset.vm"))
    assert (raised.value.status, raised.value.reason) == (409, "AlreadyExists")


def test_a_patch_of_a_version_that_is_gone_is_refused(api: Api, namespace: str) -> None:
    made = api.create(LEASES.path(namespace), lease("asset.vm"))
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    path = LEASES.path(namespace, "asset.vm")
    assert (
        api.patch(path, {"metadata": version, "spec": {"leaseTransitions": 1}})["spec"]["leaseTransitions"]
        == 1
    )
    with pytest.raises(Conflict):
        api.patch(path, {"metadata": version, "spec": {"leaseTransitions": 2}})


def test_another_object_of_the_same_name_is_not_deleted(api: Api, namespace: str) -> None:
    path = LEASES.path(namespace, "asset.vm")
    first = api.create(LEASES.path(namespace), lease("asset.vm"))["metadata"]["uid"]
    api.delete(path, uid=first)
    second = api.create(LEASES.path(namespace), lease("asset.vm"))["metadata"]["uid"]
    with pytest.raises(Conflict):
        api.delete(path, uid=first)
    api.delete(path, uid=second)
    with pytest.raises(NotFound):
        api.delete(path, uid=second)


def test_a_watch_shows_what_happens_and_ends_by_itself(api: Api, namespace: str) -> None:
    made = api.create(CONFIG_MAPS.path(namespace), {"metadata": {"name": "mine"}, "data": {"a": "1"}})
    selector = {"fieldSelector": "metadata.name=mine", "resourceVersion": made["metadata"]["resourceVersion"]}
    api.patch(CONFIG_MAPS.path(namespace, "mine"), {"data": {"a": "2"}})
    api.delete(CONFIG_MAPS.path(namespace, "mine"))
    events = [
        (kind, seen["data"]["a"])
        for kind, seen in api.watch(CONFIG_MAPS.path(namespace), selector, seconds=1)
    ]
    assert events == [("MODIFIED", "2"), ("DELETED", "2")]


def test_threads_share_an_api(api: Api, namespace: str) -> None:
    made: list[str] = []

    def make(number: int) -> None:
        for step in range(5):
            body = {"metadata": {"name": f"{number}-{step}"}, "data": {"by": str(number)}}
            made.append(api.create(CONFIG_MAPS.path(namespace), body)["data"]["by"])

    threads = [threading.Thread(target=make, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == sorted(str(number) for number in range(6) for _ in range(5))


def test_a_list_in_pages_is_whole(api: Api, namespace: str) -> None:
    for number in range(5):
        api.create(LEASES.path(namespace), lease(f"asset.{number}"))
    pages = list(api.list_pages(LEASES.path(namespace), limit=2))
    assert [len(page["items"]) for page in pages] == [2, 2, 1]


def test_certificates_in_files_log_in_as_well(
    control_plane: ControlPlane, changed: Changed, tmp_path: Path
) -> None:
    user = yaml.safe_load(control_plane.kubeconfig.read_text())["users"][0]["user"]
    for part in ("certificate", "key"):
        (tmp_path / part).write_bytes(base64.b64decode(user[f"client-{part}-data"]))
    path = changed({"client-certificate": "certificate", "client-key": "key"})
    assert "system:masters" in user_of(from_file(path))["groups"]


def test_a_token_and_a_token_file_log_in_as_the_service_account(
    control_plane: ControlPlane, changed: Changed, namespace: str, tmp_path: Path
) -> None:
    token = control_plane.token_for(namespace, "default")
    (tmp_path / "token").write_text(token)
    expected = f"system:serviceaccount:{namespace}:default"
    assert user_of(from_file(changed({"token": token})))["username"] == expected
    assert user_of(from_file(changed({"tokenFile": "token"})))["username"] == expected


def test_in_a_pod_the_service_account_logs_in(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    cluster = yaml.safe_load(control_plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "token").write_text(control_plane.token_for(namespace, "default"))
    url = urllib.parse.urlsplit(control_plane.server)
    environ = {"KUBERNETES_SERVICE_HOST": url.hostname or "", "KUBERNETES_SERVICE_PORT": str(url.port)}
    config = load_config(environ={**environ, "HOME": str(tmp_path)}, service_account=tmp_path)
    assert user_of(config)["username"] == f"system:serviceaccount:{namespace}:default"
    assert config.namespace == namespace


def plugin(folder: Path, status: dict[str, Any]) -> dict[str, Any]:
    script = folder / "login"
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    script.write_text(f"#!{sys.executable} -S\nprint({json.dumps(answer)!r})\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": V1, "command": "./login", "interactiveMode": "Never"}}


def test_a_plugin_beside_the_kubeconfig_logs_in_with_a_token(
    control_plane: ControlPlane, changed: Changed, namespace: str, tmp_path: Path
) -> None:
    path = changed(plugin(tmp_path, {"token": control_plane.token_for(namespace, "default")}))
    assert user_of(from_file(path))["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_plugin_logs_in_with_a_certificate(
    control_plane: ControlPlane, changed: Changed, tmp_path: Path
) -> None:
    user = yaml.safe_load(control_plane.kubeconfig_for("ann").read_text())["users"][0]["user"]
    pem = {
        "clientCertificateData": base64.b64decode(user["client-certificate-data"]).decode(),
        "clientKeyData": base64.b64decode(user["client-key-data"]).decode(),
    }
    assert user_of(from_file(changed(plugin(tmp_path, pem))))["username"] == "ann"


def test_a_token_that_the_server_does_not_know_is_unauthorized(changed: Changed, namespace: str) -> None:
    with pytest.raises(Unauthorized):
        Api(from_file(changed({"token": "no.such.token"}))).get(LEASES.path(namespace))


def test_acting_as_another_user_has_that_users_rights(control_plane: ControlPlane, namespace: str) -> None:
    config = from_file(control_plane.kubeconfig).acting_as("stranger", ["friends"])
    user = user_of(config)
    assert (user["username"], "friends" in user["groups"]) == ("stranger", True)
    with pytest.raises(Forbidden, match="stranger"):
        Api(config).get(LEASES.path(namespace))


def test_the_servers_certificate_is_checked_by_the_name_that_the_kubeconfig_gives(changed: Changed) -> None:
    assert user_of(from_file(changed(tls_server_name="kubernetes.default.svc")))
    with pytest.raises(Unreachable, match="certificate is not accepted"):
        user_of(from_file(changed(tls_server_name="elsewhere.example")))
    without_ca = {"certificate_authority_data": None, "tls_server_name": "elsewhere.example"}
    with pytest.raises(Unreachable, match="certificate is not accepted"):
        user_of(from_file(changed(**without_ca)))
    assert user_of(from_file(changed(**without_ca, insecure_skip_tls_verify=True)))


@pytest.fixture
def proxy() -> Iterator[Tunnel]:
    with tunnel() as running:
        yield running


def test_the_kubeconfigs_proxy_is_tunnelled_through(
    changed: Changed, control_plane: ControlPlane, proxy: Tunnel
) -> None:
    with_password = proxy.url.replace("http://", "http://ann:p%40ss@")
    assert user_of(from_file(changed(proxy_url=with_password)))
    assert proxy.targets == [urllib.parse.urlsplit(control_plane.server).netloc]
    assert proxy.authorizations == [f"Basic {base64.b64encode(b'ann:p@ss').decode()}"]


def test_a_proxy_that_is_down_is_named_without_its_password(changed: Changed) -> None:
    with tunnel() as gone:
        url = gone.url.replace("http://", "http://ann:s3cret@")
    with pytest.raises(Unreachable, match="through the proxy") as raised:
        user_of(from_file(changed(proxy_url=url)))
    assert "s3cret" not in str(raised.value)
