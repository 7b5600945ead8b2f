"""What README and docs show is run, applied, and looked up."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import kubernetes_validate
import pytest
import yaml
from tests.cluster.conftest import Operated

from assetlock.admission.settings import AdmissionSettings
from assetlock.cli.main import COMMANDS
from assetlock.controller.settings import Settings

ROOT = pathlib.Path(__file__).parents[2]
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_manifest_is_accepted_by_a_real_api_server(operated: Operated, page: pathlib.Path) -> None:
    for block in blocks(page, "yaml"):
        operated.kubectl("create", "--dry-run=server", "-f", "-", stdin=block)
        for document in yaml.safe_load_all(block):
            if not document["apiVersion"].startswith("assetlock.dev/"):
                kubernetes_validate.validate(document, "1.34", strict=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: pathlib.Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link


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
    sources = "\n".join(path.read_text() for path in (ROOT / "src/assetlock/core").glob("*.py"))
    reasons = set(re.findall(r'"((?:[A-Z][a-z]+){2,})"', sources)) & {
        "AssetNotFound",
        "NotFenceable",
        "LeaseTerminating",
        "WaitTimeout",
        "LeaseLost",
        "AssetDeleted",
        "HolderUnknown",
    }
    assert len(reasons) == 7
    text = (ROOT / "docs" / "locking.md").read_text()
    for reason in reasons:
        assert f"| `{reason}` |" in text
