"""What README and docs show is run, applied, and looked up."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml
from tests.cluster.conftest import Operated

from assetlock.admission.settings import AdmissionSettings
from assetlock.cli.main import COMMANDS
from assetlock.controller.settings import Settings

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))


def blocks(page: pathlib.Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_example_in_the_readme_works_as_pasted(tmp_path: pathlib.Path) -> None:
    [example] = [block for block in blocks(ROOT / "README.md", "sh") if "dev up --operator" in block]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example],
        cwd=ROOT,
        env={**env, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "assetlock.assetlock.dev/patching condition met" in done.stdout
    assert "configmap/app patched" in done.stdout
    assert "refused, as it should be" in done.stdout
    assert "held by kubernetes-admin" in done.stderr


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.name)
def test_every_manifest_is_accepted_by_a_real_api_server(operated: Operated, page: pathlib.Path) -> None:
    for block in [page.read_text()] if page in EXAMPLES else blocks(page, "yaml"):
        operated.kubectl("create", "--dry-run=server", "-f", "-", stdin=block)
        for document in yaml.safe_load_all(block):
            if not document["apiVersion"].startswith("assetlock.dev/"):
                kubernetes_validate.validate(document, "1.34", strict=True)


def paste(operated: Operated, folder: pathlib.Path, commands: str) -> str:
    """Run commands as pasted into a shell that has kubectl, in the test's namespace, and assetlock."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_bytes(operated.cluster.kubeconfig.read_bytes())
    env = operated.cluster.environment(kubeconfig)
    env["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    script = f"kubectl config set-context --current --namespace={operated.namespace}\n{commands}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_lock_is_taken_and_released_as_the_page_shows(operated: Operated, tmp_path: pathlib.Path) -> None:
    operated.kubectl("create", "deployment", "shop-db", "--image=postgres")
    manifests, *_ = blocks(ROOT / "docs" / "locking.md", "yaml")
    operated.kubectl("create", "-f", "-", stdin=manifests)
    commands, renewal, *_ = blocks(ROOT / "docs" / "locking.md", "sh")
    *work, release = commands.splitlines()
    said = paste(operated, tmp_path, "\n".join([*work, renewal, release]))
    assert "Held 1" in said
    assert "assetlock.assetlock.dev/patch-monday patched" in said


def test_some_of_a_pool_are_locked_as_the_page_shows(operated: Operated, tmp_path: pathlib.Path) -> None:
    for asset in ("one", "two"):
        operated.asset(asset)
        operated.kubectl("label", "asset", asset, "pool=runners")
    [manifest] = [text for text in blocks(ROOT / "docs" / "locking.md", "yaml") if "assetSelector" in text]
    operated.kubectl("create", "-f", "-", stdin=manifest)
    *_, commands = blocks(ROOT / "docs" / "locking.md", "sh")
    assert "one two" in paste(operated, tmp_path, commands)


def test_an_asset_is_closed_now_and_by_windows_as_the_page_shows(
    operated: Operated, tmp_path: pathlib.Path
) -> None:
    operated.asset("shop-db", "settings")
    page = ROOT / "docs" / "maintenance.md"
    now, again = blocks(page, "yaml")
    kubectl, command_line, windows, roles = blocks(page, "sh")
    operated.kubectl("create", "-f", "-", stdin=now)
    assert "Maintenance" in paste(operated, tmp_path, kubectl)
    assert "asset shop-db is under maintenance until" in paste(operated, tmp_path, command_line)
    operated.kubectl("create", "-f", "-", stdin=again)
    assert "saturday-night condition met" in paste(operated, tmp_path, windows)
    assert "rolebinding.rbac.authorization.k8s.io/ops created" in paste(operated, tmp_path, roles)


def test_a_job_locks_with_a_lease_as_the_page_shows(operated: Operated, tmp_path: pathlib.Path) -> None:
    operated.asset("shop-db", "settings")
    (tmp_path / "lease.yaml").write_text(blocks(ROOT / "docs" / "jobs.md", "yaml")[0])
    migrate = tmp_path / "migrate.sh"
    migrate.write_text("#!/bin/sh\nkubectl label configmap settings migrated=yes\n")
    migrate.chmod(0o755)
    commands, _ = blocks(ROOT / "docs" / "jobs.md", "sh")
    said = paste(operated, tmp_path, commands)
    assert "condition met" in said
    assert "configmap/settings labeled" in said


def test_a_lease_is_renewed_and_handed_back_as_the_page_shows(
    operated: Operated, tmp_path: pathlib.Path
) -> None:
    operated.asset("shop-db")
    (tmp_path / "lease.yaml").write_text(blocks(ROOT / "docs" / "jobs.md", "yaml")[0])
    _, commands = blocks(ROOT / "docs" / "jobs.md", "sh")
    assert "lease.coordination.k8s.io/asset.shop-db patched" in paste(operated, tmp_path, commands)


def test_the_glass_is_broken_as_the_page_shows(operated: Operated, tmp_path: pathlib.Path) -> None:
    operated.asset("vm-1", "app")
    operated.held("first")
    commands = "\n".join(blocks(ROOT / "docs" / "fence.md", "sh"))
    assert "configmap/app patched" in paste(operated, tmp_path, commands)


def test_the_roles_among_the_examples_allow_what_they_say(operated: Operated) -> None:
    cluster, namespace = operated.cluster, operated.namespace
    operated.asset("vm-1", "app")
    operated.kubectl("create", "-f", str(ROOT / "docs" / "examples" / "rbac.yaml"))
    bindings = {"asset-locker": "locker", "asset-keeper": "keeper"}
    for role, user in bindings.items():
        operated.kubectl("create", "rolebinding", role, f"--role={role}", f"--user={user}")
    operated.kubectl("create", "role", "writer", "--verb=patch,get", "--resource=configmaps")
    operated.kubectl("create", "rolebinding", "writer", "--role=writer", "--user=oncall")
    cluster.kubectl(
        "create", "clusterrolebinding", namespace, "--clusterrole=asset-break-glass", "--user=oncall"
    )
    try:
        operated.held("first", "locker")
        refused = operated.write("app", "oncall")
        assert "held by locker" in refused.stderr
        glass = ["--as=oncall", "--as-group=assetlock:break-glass"]
        patch = ["patch", "configmap", "app", "--type=merge", '--patch={"data":{"value":"2"}}']
        operated.kubectl(*patch, *glass, user="oncall")
        operated.kubectl("delete", "assetlock", "first", user="keeper")
    finally:
        cluster.kubectl("delete", "clusterrole", "asset-break-glass")
        cluster.kubectl("delete", "clusterrolebinding", namespace)


def anchors(page: pathlib.Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: pathlib.Path) -> None:
    for link in re.findall(r"\]\((?!https://)([^)]+)", page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_setting_that_is_documented_exists_with_that_default() -> None:
    fields = {**Settings.model_fields, **AdmissionSettings.model_fields}
    text = (ROOT / "docs" / "operations.md").read_text()
    named = {name.lower() for name in re.findall(r"`ASSETLOCK_([A-Z_]+)`", text)}
    assert named <= set(fields)
    assert {"default_ttl", "longest_ttl", "skew"} <= named
    for name in ("default_ttl", "longest_ttl", "skew"):
        assert f"| `ASSETLOCK_{name.upper()}` | `{fields[name].default}` |" in text


def test_every_command_that_is_documented_exists() -> None:
    for page in PAGES:
        text = "\n".join(blocks(page, "sh"))
        for command in re.findall(r"^(?:\.venv/bin/)?assetlock (\w+)", text, re.MULTILINE):
            assert command in COMMANDS, f"{page.name}: {command}"


def test_every_make_target_that_is_documented_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"^make (\w+)", "\n".join(blocks(page, "sh")), re.MULTILINE):
            assert target in targets, f"{page.name}: make {target}"


def test_every_reason_of_a_condition_is_explained() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "src/assetlock/core").rglob("*.py"))
    reasons = set(re.findall(r'"((?:[A-Z][a-z]+){2,})"', sources)) & {
        "AssetNotFound",
        "NotFenceable",
        "LeaseTerminating",
        "WaitTimeout",
        "LeaseLost",
        "AssetDeleted",
        "HolderUnknown",
        "HolderGone",
        "HolderFailed",
    }
    assert len(reasons) == 9
    text = (ROOT / "docs" / "locking.md").read_text()
    for reason in reasons:
        assert f"| `{reason}` |" in text
