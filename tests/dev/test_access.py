"""Who one can be on a local control plane, and that nobody else can read how."""

from __future__ import annotations

import json
import pathlib

import pytest

from assetlock.dev import BadRequest, ControlPlane


def whoami(control_plane: ControlPlane, user: str, *groups: str) -> tuple[str, list[str]]:
    answer = control_plane.kubectl("auth", "whoami", "-ojson", user=user, groups=groups).stdout
    info = json.loads(answer)["status"]["userInfo"]
    return info["username"], info["groups"]


def test_a_kubeconfig_authenticates_as_the_name_and_groups_it_was_made_for(
    control_plane: ControlPlane,
) -> None:
    assert whoami(control_plane, "Ada Lovelace <ada@example.org>", "engine: makers", "qa") == (
        "Ada Lovelace <ada@example.org>",
        ["engine: makers", "qa", "system:authenticated"],
    )


def test_a_name_too_long_for_a_certificate_authenticates_too(control_plane: ControlPlane) -> None:
    name = "system:serviceaccount:a-long-namespace:" + "x" * 200
    assert whoami(control_plane, name, "g" * 100) == (name, ["g" * 100, "system:authenticated"])


def test_names_that_look_alike_in_a_file_name_are_kept_apart(control_plane: ControlPlane) -> None:
    assert control_plane.kubeconfig_for("a:b") != control_plane.kubeconfig_for("a/b")
    assert control_plane.kubeconfig_for("a", "b") != control_plane.kubeconfig_for("a-b")


def test_nobody_without_a_name_gets_in(control_plane: ControlPlane) -> None:
    with pytest.raises(BadRequest, match="empty"):
        control_plane.kubeconfig_for("")


def test_a_new_user_may_do_nothing_until_a_role_says_so(control_plane: ControlPlane) -> None:
    answer = control_plane.kubectl("get", "secrets", user="nobody-special", check=False)
    assert answer.returncode == 1
    assert "Forbidden" in answer.stderr


def test_a_token_bound_to_a_pod_carries_the_pods_name_and_uid(
    control_plane: ControlPlane, namespace: str
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "worker", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "example.org/none"}]},
    }
    made = control_plane.kubectl("create", "-f", "-", "-ojson", stdin=json.dumps(pod))
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "default", pod="worker")
    answer = control_plane.kubectl("auth", "whoami", "-ojson", f"--kubeconfig={kubeconfig}")
    info = json.loads(answer.stdout)["status"]["userInfo"]
    assert info["username"] == f"system:serviceaccount:{namespace}:default"
    assert info["extra"]["authentication.kubernetes.io/pod-name"] == ["worker"]
    assert info["extra"]["authentication.kubernetes.io/pod-uid"] == [
        json.loads(made.stdout)["metadata"]["uid"]
    ]


def test_keys_and_kubeconfigs_are_readable_by_their_owner_alone(control_plane: ControlPlane) -> None:
    control_plane.kubeconfig_for("somebody")
    secrets = [*control_plane.folder.glob("pki/*"), *control_plane.folder.rglob("*kubeconfig")]
    assert len(secrets) > 15
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}
    assert control_plane.folder.stat().st_mode & 0o777 == 0o700


def test_everything_listens_on_the_loopback_address_only(control_plane: ControlPlane) -> None:
    assert _listening(control_plane.folder) == {"127.0.0.1"}


def _target(link: pathlib.Path) -> str | None:
    """What a link points to; None where that was closed meanwhile."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return None


def _listening(folder: pathlib.Path) -> set[str]:
    """Addresses that the control plane's processes accept connections on (from `/proc`)."""
    from tests.dev.conftest import processes_in

    links = (link for pid in processes_in(folder) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    opened = filter(None, map(_target, links))
    inodes = {name.strip("socket:[]") for name in opened if name.startswith("socket:")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and rest[5] in inodes:
                packed = bytes.fromhex(local.split(":")[0])[::-1]
                found.add(".".join(map(str, packed)) if len(packed) == 4 else packed.hex())
    return found
