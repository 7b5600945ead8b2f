"""The commands for scripts and people, as they are typed."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml
from tests.cli.test_quick_commands import HEAVY, loaded_by

from .conftest import Operated
from .running import Commands
from .test_docs import ROOT, blocks, paste

BIN = pathlib.Path(sys.executable).parent


@pytest.fixture
def assetlock(operated: Operated, tmp_path: pathlib.Path) -> Iterator[Commands]:
    operated.asset()
    commands = Commands(operated, tmp_path)
    yield commands
    commands.stop()


def acquired(assetlock: Commands, *options: str) -> str:
    done = assetlock("acquire", "vm-1", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_script_acquires_extends_and_releases_a_lock_by_its_name(assetlock: Commands) -> None:
    name = acquired(assetlock, "--ttl", "1m", "--reason", "patch")
    held = assetlock.operated.get("alk", name)
    assert (held["status"]["state"], held["spec"]["reason"]) == ("Held", "patch")
    extended = assetlock("extend", name, "--ttl", "10m").stdout.strip()
    assert extended == assetlock.operated.get("alk", name)["status"]["expireTime"]
    assert extended > held["status"]["expireTime"]
    released = assetlock("release", name)
    assert (released.returncode, released.stderr) == (0, f"assetlock: released {name}\n")
    assert assetlock("release", name).returncode == 0
    assert assetlock("extend", name).returncode == 76


def test_acquiring_what_another_holds_is_a_conflict_and_leaves_nothing(assetlock: Commands) -> None:
    assetlock.operated.held("other", "bob")
    done = assetlock("acquire", "vm-1", "-E", "9")
    assert (done.returncode, done.stdout, "held by bob" in done.stderr) == (9, "", True)
    assert [lock["metadata"]["name"] for lock in assetlock.locks()] == ["other"]


def test_a_clean_up_after_the_lock_was_lost_says_so_and_frees_nobody_elses(assetlock: Commands) -> None:
    name = acquired(assetlock)
    lease = ("annotate", "lease", "asset.vm-1", "assetlock.dev/revoked-by=admin")
    assetlock.operated.kubectl(*lease)
    assetlock.operated.lock("next", "bob", wait="1m")
    assetlock.operated.wait("alk/next", "condition=Acquired")
    lost = assetlock("release", name)
    assert (lost.returncode, "Revoked" in lost.stderr) == (76, True)
    assert assetlock.operated.get("alk", "next")["status"]["state"] == "Held"


def test_the_name_of_an_asset_is_no_lock_to_release(assetlock: Commands) -> None:
    acquired(assetlock)
    done = assetlock("release", "vm-1")
    assert (done.returncode, "is an asset, not a lock" in done.stderr) == (os.EX_USAGE, True)


def test_assets_are_listed_with_their_holders(assetlock: Commands) -> None:
    acquired(assetlock, "--reason", "patch")
    assetlock.operated.asset("vm-2")
    header, first, second = assetlock("list").stdout.splitlines()
    assert header.split() == ["NAME", "TYPE", "LOCK", "HOLDER", "UNTIL", "QUEUE", "AGE"]
    assert first.split()[:4] == ["vm-1", "VM", "Locked", "alice"]
    assert second.split()[0] == "vm-2"
    assert len(assetlock("list", "--no-headers", "--locked").stdout.splitlines()) == 1
    assert assetlock("list", "-o", "wide").stdout.splitlines()[1].endswith("patch")
    assert assetlock("list", "-o", "name").stdout.split() == [
        "asset.assetlock.dev/vm-1",
        "asset.assetlock.dev/vm-2",
    ]
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        items = read(assetlock("list", "-o", output).stdout)["items"]
        assert [item["metadata"]["name"] for item in items] == ["vm-1", "vm-2"]
    assert "alice with vm-1-" in assetlock("describe", "vm-1").stdout


def test_waiting_for_an_asset_ends_when_it_is_free(assetlock: Commands) -> None:
    name = acquired(assetlock)
    late = assetlock("wait", "vm-1", "--timeout", "1s")
    assert (late.returncode, "locked by alice" in late.stderr) == (os.EX_TEMPFAIL, True)
    waiting = assetlock.start("wait", "vm-1")
    assetlock("release", name)
    assert waiting.communicate(timeout=60)[0] == "asset vm-1 is free\n"
    assert waiting.returncode == 0


def test_a_cluster_that_serves_locks_is_ready(assetlock: Commands) -> None:
    assert assetlock("check", "--wait", "10s").stdout == "assetlock is ready\n"


def test_a_cluster_without_assetlock_says_so(
    assetlock: Commands, control_plane_kubeconfig: pathlib.Path
) -> None:
    for command in (("check",), ("run", "vm-1", "--", "true"), ("acquire", "vm-1")):
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "assetlock.cli.main",
                command[0],
                "--kubeconfig",
                control_plane_kubeconfig,
                *command[1:],
            ],
            capture_output=True,
            text=True,
        )
        assert (done.returncode, "is not installed" in done.stderr) == (os.EX_UNAVAILABLE, True)


@pytest.fixture
def control_plane_kubeconfig(control_plane) -> pathlib.Path:  # type: ignore[no-untyped-def]
    """That of a cluster without assetlock."""
    path: pathlib.Path = control_plane.kubeconfig
    return path


def test_names_of_assets_are_completed(assetlock: Commands) -> None:
    namespace = assetlock.operated.namespace
    environ = {**assetlock.environment(), "_ASSETLOCK_COMPLETE": "bash_complete"}

    def offered(line: str) -> str:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        done = subprocess.run(
            [BIN / "assetlock"], env={**environ, **words}, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        return done.stdout

    assert offered(f"assetlock run -n {namespace} v") == "plain,vm-1\n"
    assert offered(f"assetlock run -n {namespace} vm-1 -- v").strip() == ""
    assert offered("assetlock rele") == "plain,release\n"
    assert offered("assetlock run --kubeconfig /no/such/file v").strip() == ""


def test_kubectl_finds_the_plugin_and_its_completion(assetlock: Commands) -> None:
    namespace, cluster = assetlock.operated.namespace, assetlock.operated.cluster
    environ = {**assetlock.environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    listed = subprocess.run(
        [cluster.kubectl_path, "assetlock", "list", "-n", namespace, "-o", "name"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert listed.stdout == "asset.assetlock.dev/vm-1\n"
    completed = subprocess.run(
        [cluster.kubectl_path, "__complete", "assetlock", "run", "-n", namespace, ""],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.stdout.splitlines()[0].split("\t")[0] == "vm-1"


def test_quick_commands_load_nothing_heavy_against_a_cluster(assetlock: Commands) -> None:
    environ = {"KUBECONFIG": str(assetlock.operated.cluster.kubeconfig_for("alice"))}
    where = ("-n", assetlock.operated.namespace)
    assert loaded_by("acquire", *where, "vm-1", **environ)[0] == 0
    name = assetlock.locks()[0]["metadata"]["name"]
    for command in ("extend", "release"):
        code, modules = loaded_by(command, *where, name, **environ)
        assert code == 0
        assert not modules & set(HEAVY)


def test_the_page_works_as_pasted(operated: Operated, tmp_path: pathlib.Path) -> None:
    operated.asset()
    said = "".join(paste(operated, tmp_path, block) for block in blocks(ROOT / "docs" / "cli.md", "sh"))
    assert "patching with token 1" in said
    assert "assetlock is ready" in said
    assert "_assetlock_completion" in (tmp_path / "assetlock.bash").read_text()


def test_why_says_who_is_in_the_way_of_an_object(assetlock: Commands) -> None:
    assetlock.operated.asset("shop", "settings")
    assetlock.operated.kubectl("create", "configmap", "free")
    assert "is not locked; it is a target of asset shop" in assetlock("why", "configmap/settings").stdout
    assetlock.operated.held("other", "bob", asset="shop", reason="upgrade")
    for word in ("configmap", "configmaps", "cm"):
        said = assetlock("why", f"{word}/settings").stdout
        assert "is locked through asset shop" in said
        assert "held by bob since" in said
        assert "(upgrade)" in said
    assert assetlock("why", "cm/free").stdout == "ConfigMap free is not locked\n"
    assert assetlock("why", "cm/none").returncode == os.EX_NOINPUT
    assert assetlock("why", "settings").returncode == os.EX_USAGE


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, set[str]]:
    """What doctor says of each part."""
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        state, part = line.split(":")[0].split()
        found.setdefault(part, set()).add(state)
    return found


def test_doctor_finds_nothing_wrong_where_nothing_is(assetlock: Commands, operated: Operated) -> None:
    operated.asset("shop", "settings")
    operated.held("other", "bob", asset="shop")
    done = assetlock("doctor", env={"KUBECONFIG": str(operated.cluster.kubeconfig)})
    assert (done.returncode, set.union(*findings(done).values())) == (0, {"ok"}), done.stdout


def test_doctor_says_what_is_missing(assetlock: Commands, control_plane_kubeconfig: pathlib.Path) -> None:
    done = assetlock("doctor", "--kubeconfig", str(control_plane_kubeconfig), "-n", "default")
    assert done.returncode == os.EX_UNAVAILABLE
    for part in ("resources", "policies", "webhooks", "certificate", "controller"):
        assert findings(done)[part] == {"WRONG"}
    assert "run assetlock install" in done.stdout


def test_doctor_says_what_whoever_asks_may_not_do(assetlock: Commands) -> None:
    done = assetlock(
        "doctor", "--as", "stranger", env={"KUBECONFIG": str(assetlock.operated.cluster.kubeconfig)}
    )
    assert (done.returncode, findings(done)["rights"]) == (os.EX_UNAVAILABLE, {"WRONG"})
    assert findings(done)["resources"] == {"unknown"}
